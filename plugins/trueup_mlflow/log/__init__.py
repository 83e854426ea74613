"""Calls that log a result to a run."""
