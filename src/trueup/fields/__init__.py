"""Calibration errors over the levels of a field, with their noise floor and the worst levels."""
