"""The estimators that the one-step paper compares with."""
