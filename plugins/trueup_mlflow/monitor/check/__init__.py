"""The registered model, and the check that belongs to it."""
