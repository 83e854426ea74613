"""Direct loss estimation: gradient boosting on the squared errors of held-out rows.

LightGBM's reader is compiled code that trusts what it reads: a child that is out of range, or its
own ancestor, makes it read foreign memory or run for ever. So a stored text is taken apart into
numbers here, and only a text that is made of the checked numbers goes on.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.arrays import Arrays
from trueup.extras import needed_by
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.storage import from_raw_text, raw_text


class DirectLossEstimator:
    """LightGBM's default regression of the squared error on ``[x, f(x)]``, as NannyML has it.

    Its state is LightGBM's own text format: no pickle. An ImportError says that it is not
    installed.
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
        return {"trees": raw_text(self._booster.model_to_string())}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> DirectLossEstimator:
        estimator = cls()
        estimator._booster = _lightgbm().Booster(
            model_str=checked_trees(from_raw_text(arrays["trees"]))
        )
        return estimator


def _lightgbm() -> Any:
    with needed_by("Direct loss estimation"):
        import lightgbm
    return lightgbm


_HEADER = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
objective=regression
feature_names={names}
feature_infos={infos}

"""
_COLUMNS: dict[str, type[int] | type[float]] = {
    "split_feature": int,
    "split_gain": float,
    "threshold": float,
    "decision_type": int,
    "left_child": int,
    "right_child": int,
    "leaf_value": float,
    "leaf_weight": float,
    "leaf_count": int,
    "internal_value": float,
    "internal_weight": float,
    "internal_count": int,
}
_FREE_OF_CATEGORIES = (0, 2, 4, 6, 8, 10)  # decision types by numbers, however missing ones go
_MOST_LEAVES = 4096


def checked_trees(text: str) -> str:
    """Return a text of the same trees of a regression on numbers; a ValueError for others."""
    header, *trees = re.split(r"^Tree=\d+\n", text.partition("\nend of trees\n")[0], flags=re.M)
    n_features = int(_entries(header)["max_feature_idx"]) + 1
    if not 0 < n_features <= len(text) or not trees:
        raise ValueError("trees of a regression expected")
    start = _HEADER.format(
        last=n_features - 1,
        names=" ".join(f"Column_{i}" for i in range(n_features)),
        infos=" ".join(["[-inf:inf]"] * n_features),
    )
    parts = (f"Tree={i}\n{_checked_tree(tree, n_features)}" for i, tree in enumerate(trees))
    return start + "".join(parts) + "end of trees\n"


def _entries(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in pairs}


def _checked_tree(text: str, n_features: int) -> str:
    entries = _entries(text)
    n_leaves = int(entries["num_leaves"])
    if not 1 <= n_leaves <= _MOST_LEAVES or entries["num_cat"] != "0":
        raise ValueError("a tree on numeric features expected")
    columns = {name: _column(name, entries[name], n_leaves) for name in _COLUMNS}
    if n_leaves > 1:
        _require_tree(columns, n_leaves, n_features)
    shrinkage = float(_numbers(entries["shrinkage"], 1, float)[0])
    lines = [f"num_leaves={n_leaves}", "num_cat=0"]
    lines += [f"{name}={' '.join(map(repr, columns[name].tolist()))}" for name in _COLUMNS]
    return "\n".join([*lines, "is_linear=0", f"shrinkage={shrinkage!r}", "", "", ""])


def _column(name: str, text: str, n_leaves: int) -> NDArray[Any]:
    """Return a column of a tree; one that is a single leaf has its value alone."""
    if n_leaves == 1 and name != "leaf_value":
        return np.zeros(0)
    n = n_leaves if name.startswith("leaf_") else n_leaves - 1
    return _numbers(text, n, _COLUMNS[name])


def _require_tree(columns: dict[str, NDArray[Any]], n_leaves: int, n_features: int) -> None:
    """Refuse nodes that don't form one binary tree; a child comes after its parent."""
    feature, kind = columns["split_feature"], columns["decision_type"]
    children = np.concatenate([columns["left_child"], columns["right_child"]])
    parents = np.tile(np.arange(n_leaves - 1), 2)
    expected = np.concatenate([np.arange(-n_leaves, 0), np.arange(1, n_leaves - 1)])
    inner = children >= 0
    if not (
        np.array_equal(np.sort(children), expected)
        and (children[inner] > parents[inner]).all()
        and ((feature >= 0) & (feature < n_features)).all()
        and np.isin(kind, _FREE_OF_CATEGORIES).all()
    ):
        raise ValueError("a binary tree on the features expected")


def _numbers(text: str, n: int, kind: type[int] | type[float]) -> NDArray[Any]:
    words = text.split(" ") if text else []
    if len(words) != n:
        raise ValueError(f"{n} numbers expected, got {len(words)}")
    found = np.array([kind(word) for word in words])
    if not np.isfinite(found).all():
        raise ValueError("finite numbers expected")
    return found
