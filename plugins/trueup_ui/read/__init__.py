"""From an MLflow store to frozen dataclasses; nothing is written."""
