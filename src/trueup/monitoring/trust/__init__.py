"""How wide an estimate's interval is, and when not to trust it."""
