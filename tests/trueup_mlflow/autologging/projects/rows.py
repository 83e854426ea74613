"""The rows of the projects, and how a project shows what it predicts for those of validation."""

import json
import warnings

import numpy as np

warnings.simplefilter("ignore")  # of the frameworks

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 4)).astype("float32")
p = 1 / (1 + np.exp(-X[:, 0] - 0.5))
y = (rng.uniform(size=500) < p).astype("float32")
t = (X[:, 0] + rng.normal(size=500)).astype("float32")
X, X_val, y, y_val, t, t_val = X[:300], X[300:], y[:300], y[300:], t[:300], t[300:]


def show(**columns):
    print("SHOW", json.dumps({k: np.asarray(v, dtype=float).tolist() for k, v in columns.items()}))
