"""Calibrated models as MLflow models."""
