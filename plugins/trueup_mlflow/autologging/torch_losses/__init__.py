"""The losses of torch: which number of a validation loop was made of which rows."""
