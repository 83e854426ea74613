"""The command ``trueup``."""
