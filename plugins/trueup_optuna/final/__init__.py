"""The final race and the confirmation on seeds that nobody has seen."""
