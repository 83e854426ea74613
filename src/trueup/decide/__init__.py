"""Which of two pipelines is better: the arithmetic behind :mod:`trueup.comparison` and the race."""
