"""Calibrators in files that can run no code, and as tables of numbers."""
