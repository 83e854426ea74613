"""Networks that estimate an error, and predictions out of fold to train them on."""
