"""Pipelines over seeds, read from the runs that MLflow holds."""
