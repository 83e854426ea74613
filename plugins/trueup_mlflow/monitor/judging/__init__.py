"""How a monitored version is judged: by thresholds, with a verdict, its coverage and its gate."""
