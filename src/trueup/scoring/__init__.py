"""Algorithm 1 on checked rows: fit the bias on one part, score the other, and tell what it cost."""
