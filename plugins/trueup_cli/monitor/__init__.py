"""``trueup monitor``: the commands around registered models."""
