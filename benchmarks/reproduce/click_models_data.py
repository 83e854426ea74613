"""Click data for the papers' tables: two stand-ins that anyone can run, and the official files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import field_aware_data
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

FLIGHTS = Path(__file__).parents[2] / "examples" / "data" / "flights_2013.parquet"
LEVELS = (2000, 1000, 500, 200, 100, 50, 24, 12, 8, 4)
N_NUMBERS, CLICK_RATE = 3, 0.17
AVAZU_NUMBERS = ("C15", "C16", "C18", "C19", "C20", "C21")
CRITEO_NUMBERS = tuple(f"I{i}" for i in range(1, 14))
MIN_COUNT = 10


@dataclass(frozen=True)
class ClickData:
    """Rows of one data set: first those of training, then those of validation.

    Attributes
    ----------
    name : str
        What the results are filed under.
    codes : array of shape (n, n_fields)
        Level of each field; 0 is a level not seen, or too rarely, in training.
    numbers : array of shape (n, n_numbers)
        Numeric columns, standardised over the training rows.
    y : array of shape (n,)
        Clicked or not.
    n_train : int
        Rows of training.
    row_id : array of shape (n,)
        Position in the source, by which a split of the validation rows is drawn.
    bias_fraction : float
        Share of the validation rows on which the papers fit the bias.
    removed_field : int
        The field that "remove sparse" leaves out.
    """

    name: str
    codes: NDArray[np.int64]
    numbers: NDArray[np.float32]
    y: NDArray[np.float32]
    n_train: int
    row_id: NDArray[np.int64]
    bias_fraction: float
    removed_field: int

    def digest(self) -> str:
        """Return a fingerprint of all values."""
        parts = (self.codes, self.numbers, self.y, np.array(self.n_train), self.row_id)
        state = blake2b(digest_size=8)
        for part in parts:
            state.update(np.ascontiguousarray(part))
        return state.hexdigest()

    def with_fewer(self, n_train: int) -> ClickData:
        """Return the same validation rows after the last ``n_train`` rows of training."""
        first = self.n_train - n_train
        columns = {key: getattr(self, key)[first:] for key in ("codes", "numbers", "y", "row_id")}
        return replace(self, n_train=n_train, **columns)


def flights(n_train: int = 60_000, n_validation: int = 15_000) -> ClickData:
    """Read flights of 2013: 15 minutes late or not; the rows are drawn once, at random."""
    table = pd.read_parquet(FLIGHTS)
    drawn = np.random.default_rng(0).permutation(len(table))[: n_train + n_validation]
    table = table.iloc[drawn]
    day = pd.to_datetime({"year": 2013, "month": table["month"], "day": table["day"]})
    fields = {
        **{name: table[name] for name in ("carrier", "flight", "tailnum", "origin", "dest")},
        "hour": table["hour"],
        "weekday": day.dt.day_of_week,
        "day": day.dt.day_of_year,
    }
    numbers = {name: table[name] for name in ("distance", "hour")} | {"day": day.dt.day_of_year}
    return _click_data(
        "flights",
        {name: column.to_numpy() for name, column in fields.items()},
        {name: column.to_numpy() for name, column in numbers.items()},
        table["late"].to_numpy(np.float32),
        row_id=drawn,
        n_train=n_train,
        bias_fraction=0.1,
        removed_field="carrier",
    )


def synthetic(seed: int, n_train: int = 60_000, n_validation: int = 15_000) -> ClickData:
    """Draw clicks from first-order effects, pairwise products and one nonlinear term.

    Ten fields of 2,000 to 4 levels, the large ones with a Pareto tail; three numbers; 17% are
    clicked. The last field has a third of the effect of the others, so that leaving it out is
    seen, but not in each pair of models.
    """
    rng = np.random.default_rng(seed)
    n = n_train + n_validation
    codes = np.stack([_levels(rng, n, levels) for levels in LEVELS], axis=1)
    numbers = rng.standard_normal((n, N_NUMBERS))
    logit = _logit(rng, codes, numbers)
    shift = brentq(lambda c: float(expit(logit + c).mean()) - CLICK_RATE, -30.0, 30.0)
    y = rng.random(n) < expit(logit + shift)
    return _click_data(
        f"synthetic-{seed}",
        {f"field_{i}": codes[:, i] for i in range(len(LEVELS))},
        {f"number_{i}": numbers[:, i] for i in range(N_NUMBERS)},
        y.astype(np.float32),
        row_id=np.arange(n),
        n_train=n_train,
        bias_fraction=0.1,
        removed_field=f"field_{len(LEVELS) - 1}",
    )


def _levels(rng: np.random.Generator, n: int, levels: int) -> NDArray[np.int64]:
    if levels <= 20:
        return rng.integers(0, levels, n)
    return np.minimum((rng.pareto(1.1, n) * levels * 0.03).astype(np.int64), levels - 1)


def _logit(
    rng: np.random.Generator, codes: NDArray[np.int64], numbers: NDArray[np.float64]
) -> NDArray[np.float64]:
    size = np.r_[np.ones(len(LEVELS) - 1), 1.0 / 3.0]
    first, vectors = np.zeros(len(codes)), []
    for field, levels in enumerate(LEVELS):
        effect = rng.standard_normal(levels) * 0.72 / np.sqrt(len(LEVELS))
        first += size[field] * effect[codes[:, field]]
        vectors.append(size[field] * rng.standard_normal((levels, 4))[codes[:, field]])
    total = np.sum(vectors, axis=0)
    pairs = 0.5 * (total**2 - np.sum(np.square(vectors), axis=0)).sum(axis=1)
    bend = np.tanh(vectors[0][:, 0] * vectors[1][:, 1] + vectors[2][:, 0])
    curve = numbers[:, 0] + np.abs(numbers[:, 1]) + numbers[:, 2] * vectors[5][:, 0]
    return np.asarray(first + 0.55 * pairs / pairs.std() + 0.3 * bend + 0.1 * curve)


def avazu(path: Path, n_train: int | None = None, n_validation: int = 0) -> ClickData:
    """Read the official ``train.csv``: its first 10 million rows, shuffled, 80 / 2 / 18%.

    With ``n_train`` the first ``n_train + n_validation`` rows, shuffled and split so.
    """
    rows = 10_000_000 if n_train is None else n_train + n_validation
    table = field_aware_data.avazu(_folder(path, "train.csv"), rows)
    train = _training_rows("avazu", len(table.y), rows, 0.80, n_train)
    return _official("avazu", table, AVAZU_NUMBERS, train, 0.1, removed="device_model")


def criteo(path: Path, n_train: int | None = None, n_validation: int = 0) -> ClickData:
    """Read the official ``train.txt``: its first 15 million rows, shuffled, 85 / 3 / 12%.

    With ``n_train`` the first ``n_train + n_validation`` rows, shuffled and split so.
    """
    rows = 15_000_000 if n_train is None else n_train + n_validation
    table = field_aware_data.criteo(_folder(path, "train.txt"), rows)
    train = _training_rows("criteo", len(table.y), rows, 0.85, n_train)
    return _official("criteo", table, CRITEO_NUMBERS, train, 0.2, removed="C14")


def _training_rows(name: str, found: int, wanted: int, share: float, n_train: int | None) -> int:
    """Return the rows of training; say where the file holds fewer rows than were asked for."""
    if n_train is not None and found < wanted:
        raise SystemExit(
            f"--rows must be at most {found:,} together, as {name} holds; got {wanted:,}."
        )
    if found < wanted:
        print(f"{name}: {found:,} rows in the file, where the paper takes {wanted:,}")
    return round(share * found) if n_train is None else n_train


def _folder(path: Path, name: str) -> Path:
    if path.name != name:
        raise SystemExit(f"--path must name the official {name}; got {path}.")
    return path.parent


def _official(
    name: str,
    table: field_aware_data.Table,
    numeric: Sequence[str],
    n_train: int,
    bias_fraction: float,
    *,
    removed: str,
) -> ClickData:
    order = np.random.default_rng(0).permutation(len(table.y))
    columns = {key: column[order] for key, column in table.columns.items()}
    numbers = {key: _logarithm(columns.pop(key)) for key in numeric}
    return _click_data(
        name,
        columns,
        numbers,
        table.y[order].astype(np.float32),
        row_id=order,
        n_train=n_train,
        bias_fraction=bias_fraction,
        removed_field=removed,
        min_count=MIN_COUNT,
    )


def _logarithm(column: NDArray[Any]) -> NDArray[np.float64]:
    """Return log(1 + x), with missing and negative values as zero."""
    return np.log1p(np.maximum(np.nan_to_num(column.astype(np.float64)), 0.0))


def _click_data(
    name: str,
    fields: dict[str, NDArray[Any]],
    numbers: dict[str, NDArray[Any]],
    y: NDArray[np.float32],
    *,
    row_id: NDArray[np.int64],
    n_train: int,
    bias_fraction: float,
    removed_field: str,
    min_count: int = 1,
) -> ClickData:
    return ClickData(
        name=name,
        codes=np.stack([_encode(column, n_train, min_count) for column in fields.values()], axis=1),
        numbers=np.stack([_standardise(column, n_train) for column in numbers.values()], axis=1),
        y=y,
        n_train=n_train,
        row_id=row_id.astype(np.int64),
        bias_fraction=bias_fraction,
        removed_field=list(fields).index(removed_field),
    )


def _encode(column: NDArray[Any], n_train: int, min_count: int) -> NDArray[np.int64]:
    """Return 1, 2, ... for levels that training holds ``min_count`` times, else 0."""
    codes, levels = pd.factorize(column, use_na_sentinel=False)
    known = np.bincount(codes[:n_train], minlength=len(levels)) >= min_count
    return np.where(known, np.cumsum(known), 0)[codes].astype(np.int64)


def _standardise(column: NDArray[Any], n_train: int) -> NDArray[np.float32]:
    seen = column[:n_train].astype(np.float64)
    return ((column - seen.mean()) / (seen.std() or 1.0)).astype(np.float32)
