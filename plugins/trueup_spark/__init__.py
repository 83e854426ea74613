"""Trueup for Spark."""
