"""How a monitored version stands: its verdict, its thresholds, its coverage, its gate."""
