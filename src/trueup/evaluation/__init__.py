"""Evaluate predictions in memory and in files, and test what the bias costs."""
