"""The calibrators that torch trains."""
