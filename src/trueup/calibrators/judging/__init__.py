"""Whether a calibrator helps: the guard, its origins over time, and the table that compares."""
