"""``trueup tune``: run, go on with and report a study."""
