"""Direct loss estimation: gradient boosting on the squared errors of held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.arrays import Arrays
from trueup.extras import needed_by
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.storage import from_raw_text, raw_text
from trueup.monitoring.tree_text import checked_trees


class DirectLossEstimator:
    """LightGBM's default regression of the squared error on ``[x, f(x)]``.

    Raises
    ------
    ImportError
        If lightgbm is not installed.

    Notes
    -----
    NannyML's estimator of this name does the same. Its state is LightGBM's own text format: no
    pickle.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state
        self._booster: Any = None

    def fit(self, x: FloatArray, y_pred: FloatArray, errors: FloatArray) -> DirectLossEstimator:
        """Fit on encoded rows of shape (n, d), predictions (n,) and squared errors (n,)."""
        lightgbm = _lightgbm()
        settings = {"verbose": -1, "num_threads": 1, "seed": self.random_state}
        data = lightgbm.Dataset(np.column_stack([x, y_pred]), label=errors, params=settings)
        self._booster = lightgbm.train({**settings, "objective": "regression"}, data)
        return self

    def squared_errors(self, x: FloatArray, y_pred: FloatArray) -> FloatArray:
        """Return the estimated squared error of each row, at least 0, shape (n,)."""
        inputs = np.column_stack([x, y_pred])
        return np.asarray(np.maximum(self._booster.predict(inputs, num_threads=1), 0.0))

    @property
    def width(self) -> int:
        """Number of encoded features that the trees take, beside the prediction."""
        return int(self._booster.num_feature()) - 1

    def to_arrays(self) -> Arrays:
        """Return the trees as text."""
        return {"trees": raw_text(self._booster.model_to_string())}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> DirectLossEstimator:
        """Return the estimator that ``to_arrays`` described."""
        estimator = cls()
        estimator._booster = _lightgbm().Booster(
            model_str=checked_trees(from_raw_text(arrays["trees"]))
        )
        return estimator


def _lightgbm() -> Any:
    with needed_by("Direct loss estimation"):
        import lightgbm
    return lightgbm
