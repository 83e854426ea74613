"""Piecewise linear maps of the logit."""
