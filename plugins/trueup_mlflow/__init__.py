"""Trueup for MLflow."""
