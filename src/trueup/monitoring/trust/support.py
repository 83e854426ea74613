"""Support: whether operational rows lie where the reference has rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from trueup.arrays import Arrays
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.panel.importance import pooled_scale
from trueup.monitoring.storage import finite

OUTSIDE = "outside of the reference"
AUC_LIMIT = 0.95
OUTSIDE_LIMIT = 0.2
SUPPORT_ROWS = 2_000
_FOLDS = 5


@dataclass(frozen=True)
class Support:
    """Verdict on one batch: trusted or not, why, and the numbers behind it."""

    trusted: bool
    reasons: tuple[str, ...]
    diagnostics: Mapping[str, float]


@dataclass(frozen=True)
class SupportCheck:
    """Detector of rows that lie outside of the reference, of which it keeps encoded rows.

    Not trusted are rows that a classifier tells from the reference almost surely (area under the
    curve above 0.95) and of which more than a fifth lie farther from their nearest reference row
    than 99% of the reference rows do from theirs, which is ``limit``. A change of the target given
    the features is invisible to it.
    """

    rows: FloatArray
    limit: float

    @classmethod
    def fitted(cls, x: FloatArray, random_state: int = 0) -> SupportCheck:
        """Keep at most 2,000 of the encoded reference rows."""
        rows = sample_rows(x, SUPPORT_ROWS, random_state)
        distance = _nearest(rows, rows, rank=min(2, len(rows)))
        return cls(rows, float(np.quantile(distance, 0.99)))

    def judge(self, x: FloatArray, random_state: int = 0) -> Support:
        """Return the verdict on encoded operational rows; at most 2,000 of them are looked at."""
        rows = sample_rows(x, SUPPORT_ROWS, random_state)
        auc = domain_auc(self.rows, rows, random_state)
        outside = float((_nearest(self.rows, rows) > self.limit).mean())
        trusted = not (auc > AUC_LIMIT and outside > OUTSIDE_LIMIT)
        reason = (
            f"{OUTSIDE}: {outside:.0%} of the rows are farther from it than its own "
            f"rows are, and a classifier tells them apart (area under the curve {auc:.2f})"
        )
        return Support(
            trusted, () if trusted else (reason,), {"domain_auc": auc, "outside": outside}
        )

    def to_arrays(self) -> Arrays:
        return {"rows": self.rows, "limit": np.array(self.limit)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> SupportCheck:
        check = cls(finite(arrays["rows"], 2), float(finite(arrays["limit"], 0)))
        if not len(check.rows):
            raise ValueError("rows of a reference expected")
        return check


def sample_rows(x: FloatArray, size: int, random_state: int) -> FloatArray:
    """Return ``size`` rows drawn without replacement, or all as they are if there are fewer."""
    return x if len(x) <= size else x[sample_positions(len(x), size, random_state)]


def sample_positions(n: int, size: int, random_state: int) -> NDArray[np.intp]:
    """Return ``size`` of the positions 0 to n - 1, or all of them if there are fewer."""
    if n <= size:
        return np.arange(n)
    return np.random.default_rng(random_state).choice(n, size, replace=False)


def _nearest(reference: FloatArray, rows: FloatArray, rank: int = 1) -> FloatArray:
    """Return each distance to the nearest reference row; rank 2 passes over the row itself."""
    distance, _ = cKDTree(reference).query(rows, k=[rank])
    return np.asarray(distance)[:, 0]


def domain_auc(reference: FloatArray, operational: FloatArray, random_state: int = 0) -> float:
    """Return the area under the curve of a classifier of reference against operational rows.

    It is a cross-fitted logistic regression on the standardised features and their squares; 0.5
    means that it cannot tell, or that a side has fewer than 5 rows.
    """
    if min(len(reference), len(operational)) < _FOLDS:
        return 0.5
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    rows = np.concatenate(pooled_scale(reference, operational))
    origin = np.repeat([0, 1], [len(reference), len(operational)])
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=random_state)
    score = cross_val_predict(
        LogisticRegression(solver="newton-cholesky"),
        np.column_stack([rows, rows**2]),
        origin,
        cv=folds,
        method="decision_function",
    )
    return roc_area(score[origin == 0], score[origin == 1])


def roc_area(negative: FloatArray, positive: FloatArray) -> float:
    """Return the area under the ROC curve: how often a positive score is the higher one."""
    from scipy.stats import rankdata  # .4 s of imports, which the fit of a check does not need

    ranks = rankdata(np.concatenate([negative, positive]))[len(negative) :]
    wins = ranks.sum() - len(positive) * (len(positive) + 1) / 2.0
    return float(wins / (len(negative) * len(positive)))
