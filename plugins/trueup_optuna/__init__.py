"""Trueup for Optuna."""
