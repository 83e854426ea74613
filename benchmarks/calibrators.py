"""Calibrators on made data, where the truth is known: the guard, ILPS against Platt, and speed.

Usage: ``python benchmarks/calibrators.py guard|ilps|speed [--replicates N] [--seeds N]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from trueup.calibrators import (
    Calibrator,
    FieldOffsetCalibrator,
    Guarded,
    HistogramCalibrator,
    ILPSCalibrator,
    IsotonicCalibrator,
    NeuralCalibrator,
    PlattCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
)

FloatArray = NDArray[np.float64]
LEVELS = 20


@dataclass(frozen=True)
class GuardTrial:
    """One development set: the true gain, in standard errors, and the decision.

    The guard is not asked about a gain of more than 0 and less than 3, which no claim is about.
    """

    gain_in_errors: float
    kept: bool


def guard_trial(
    calibrator: Calibrator, shift: float, n: int, seed: int, level: float = -1.0
) -> GuardTrial:
    """Draw 2 n exchangeable rows of a model that is off by ``shift`` on average; ask the guard.

    The gain is that of the calibrator fitted on part one, expected over the labels of the rows of
    part two; its standard error is the expected one. ``level`` is the mean of the model's logits.
    """
    rng = np.random.default_rng(seed)
    margin, site = rng.normal(level, 1.0, 2 * n), rng.integers(0, LEVELS, 2 * n)
    p, truth = expit(margin), expit(margin + shift * np.where(site % 2, 1.5, 0.5))
    y = (rng.random(2 * n) < truth).astype(np.int64)
    first, second = slice(0, n), slice(n, None)
    calibrator.fit(p[first], y[first], fields={"site": site[first]})
    after = calibrator.predict_proba(p[second], fields={"site": site[second]})[:, 1]
    gain, error = expected_gain(truth[second], p[second], after)
    if 0.0 < gain < 3.0 * error:
        return GuardTrial(gain / error, False)
    guarded = Guarded(calibrator).fit(p, y, fields={"site": site}, times=np.arange(2 * n))
    return GuardTrial(gain / error, guarded.decision_.kept)


def expected_gain(truth: FloatArray, before: FloatArray, after: FloatArray) -> tuple[float, float]:
    """Return the log loss gain and its standard error, both expected over y ~ truth."""
    if_positive = np.log(after) - np.log(before)
    if_negative = np.log1p(-after) - np.log1p(-before)
    mean = truth * if_positive + (1.0 - truth) * if_negative
    square = truth * if_positive**2 + (1.0 - truth) * if_negative**2
    variance = square.mean() - mean.mean() ** 2
    return float(mean.mean()), float(np.sqrt(max(variance, 1e-300) / len(truth)))


def kept_share(trials: list[GuardTrial], holds: Callable[[float], bool]) -> tuple[float, int]:
    """Return the share of kept calibrators among the trials whose gain fulfils the condition."""
    chosen = [trial.kept for trial in trials if holds(trial.gain_in_errors)]
    return (float(np.mean(chosen)) if chosen else float("nan")), len(chosen)


GUARDED: dict[str, Calibrator] = {
    "shift": ShiftCalibrator(),
    "platt": PlattCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "histogram": HistogramCalibrator(),
    "ilps": ILPSCalibrator(),
    "field offset": FieldOffsetCalibrator(),
}


NO_GAIN = {
    "shift": 0.05,
    "platt": 0.07,
    "isotonic": 0.28,
    "histogram": 0.24,
    "ilps": 0.1,
    "field offset": 0.1,
}
"""The shift at which a calibrator harms about as often as it helps, the hardest case."""


def report_guard(replicates: int, n: int, level: float) -> None:
    """Print how often the guard keeps what harms, and what gains at least 3 standard errors.

    The model is right, then off so little that calibrating is worth nothing, then off by more.
    """
    scale = float(np.sqrt(information(-1.0) / information(level)))
    print("| calibrator | shift | harmful kept ± SE | of | gains >= 3 SE kept ± SE | of |")
    print("|---|---|---|---|---|---|")
    for name, calibrator in GUARDED.items():
        for shift in (0.0, scale * NO_GAIN[name], scale * (NO_GAIN[name] + 0.3)):
            trials = [guard_trial(calibrator, shift, n, seed, level) for seed in range(replicates)]
            harmful = share_text(*kept_share(trials, lambda gain: gain <= 0.0))
            gains = share_text(*kept_share(trials, lambda gain: gain >= 3.0))
            print(f"| {name} | {shift:.2f} | {harmful} | {gains} |", flush=True)


def information(level: float) -> float:
    """Return what a row says about a shift: the mean of p (1 - p) over logits N(level, 1)."""
    p = expit(level + norm.ppf((np.arange(1000) + 0.5) / 1000))
    return float((p * (1.0 - p)).mean())


def share_text(share: float, n: int) -> str:
    """Return a share with its standard error, and of how many."""
    return f"{share:.3f} ± {np.sqrt(share * (1.0 - share) / n):.3f} | {n}" if n else "- | 0"


VOCABULARIES = (2000, 1000, 500, 200, 100, 50, 24, 12, 8, 4)
DRIFTING_FIELD = 3


@dataclass(frozen=True)
class ClickData:
    """Rows of ten fields and the true log-odds of a click."""

    fields: NDArray[np.int64]
    margin: FloatArray


def click_data(n: int, seed: int, rate: float = 0.17) -> ClickData:
    """Draw clicks that depend on main effects, products of embeddings and one wilder term."""
    rng = np.random.default_rng(seed)
    columns = [
        np.minimum((rng.pareto(1.1, n) * size * 0.03).astype(np.int64), size - 1)
        if size > 20
        else rng.integers(0, size, n)
        for size in VOCABULARIES
    ]
    effects = [
        rng.standard_normal(size) * 0.72 / np.sqrt(len(VOCABULARIES)) for size in VOCABULARIES
    ]
    tables = [rng.standard_normal((size, 4)) for size in VOCABULARIES]
    vectors = [table[column] for table, column in zip(tables, columns, strict=True)]
    margin = sum(effect[column] for effect, column in zip(effects, columns, strict=True))
    products = 0.5 * (sum(vectors) ** 2 - sum(vector**2 for vector in vectors)).sum(axis=1)
    margin = margin + 0.55 * products / products.std()
    margin = margin + 0.3 * np.tanh(vectors[0][:, 0] * vectors[1][:, 1] + vectors[2][:, 0])
    level = brentq(lambda b: float(expit(margin + b).mean()) - rate, -20.0, 20.0)
    return ClickData(np.stack(columns, axis=1), margin + level)


def drifted_predictions(
    seed: int, n_train: int = 60_000, n_rest: int = 60_000
) -> tuple[FloatArray, NDArray[np.int64], FloatArray, NDArray[np.int64]]:
    """Train a network, let slope, level and one field drift, and return what comes after.

    Returns
    -------
    tuple
        Logits of the network, labels, true probabilities, and the drifting field's values, for the
        rows after training.
    """
    data = click_data(n_train + n_rest, 100 + seed)
    rng = np.random.default_rng(seed)
    offset = rng.normal(0.0, 0.5, VOCABULARIES[DRIFTING_FIELD])
    site = data.fields[:, DRIFTING_FIELD]
    truth = data.margin.copy()
    truth[n_train:] = 0.85 * truth[n_train:] + 0.25 + offset[site[n_train:]]
    y = (rng.random(len(truth)) < expit(truth)).astype(np.int64)
    base = NeuralCalibrator(
        hidden=(64, 64), epochs=1, validation_fraction=0.0, offsets=False, random_state=seed
    )
    names = [f"field {i}" for i in range(len(VOCABULARIES))]
    columns = dict(zip(names, data.fields.T, strict=True))
    train = {name: column[:n_train] for name, column in columns.items()}
    rest = {name: column[n_train:] for name, column in columns.items()}
    base.fit(np.full(n_train, y[:n_train].mean()), y[:n_train], fields=train)
    p = base.predict_proba(np.full(n_rest, y[:n_train].mean()), fields=rest)[:, 1]
    return logit(p), y[n_train:], expit(truth[n_train:]), site[n_train:]


def drift_calibrators(seed: int) -> dict[str, Calibrator]:
    """Return the calibrators that are compared under drift."""
    return {
        "platt": PlattCalibrator(),
        "ilps": ILPSCalibrator(),
        "ilps (paper's grid)": ILPSCalibrator(knots="paper"),
        "ilps (paper's grid and SGD)": ILPSCalibrator(knots="paper", solver="sgd"),
        "isotonic": IsotonicCalibrator(),
        "histogram": HistogramCalibrator(),
        "temperature": TemperatureCalibrator(),
        "field offset": FieldOffsetCalibrator(),
        "neural, z only": NeuralCalibrator(random_state=seed),
        "neural, z only, no offsets": NeuralCalibrator(offsets=False, random_state=seed),
    }


def log_losses(
    seed: int, calibrators: Mapping[str, Calibrator], n_rest: int = 60_000
) -> dict[str, float]:
    """Return the expected log loss on test rows of calibrators fitted on development rows."""
    margin, y, truth, site = drifted_predictions(seed, n_rest=n_rest)
    dev, test = slice(0, n_rest // 2), slice(n_rest // 2, None)
    p = expit(margin)
    losses = {"raw": cross_entropy(truth[test], p[test]), "oracle": cross_entropy(truth[test])}
    for name, calibrator in calibrators.items():
        calibrator.fit(p[dev], y[dev], fields={"site": site[dev]})
        calibrated = calibrator.predict_proba(p[test], fields={"site": site[test]})[:, 1]
        losses[name] = cross_entropy(truth[test], calibrated)
    return losses


def cross_entropy(truth: FloatArray, p: FloatArray | None = None) -> float:
    """Return the log loss of p expected over y ~ truth; that of the truth by default."""
    p = truth if p is None else p
    return float(-(truth * np.log(p) + (1.0 - truth) * np.log1p(-p)).mean())


def report_ilps(seeds: int) -> None:
    """Print the expected log loss of each calibrator, and its distance from Platt."""
    runs = [log_losses(seed, drift_calibrators(seed)) for seed in range(seeds)]
    print("| calibrator | log loss | minus Platt, mean | worst seed |\n|---|---|---|---|")
    for name in runs[0]:
        distance = [run[name] - run["platt"] for run in runs]
        mean = np.mean([run[name] for run in runs])
        print(f"| {name} | {mean:.5f} | {np.mean(distance):+.5f} | {max(distance):+.5f} |")


def report_speed(n: int = 1_000_000) -> None:
    """Print processor seconds of fitting and rows per second of predicting, best of three."""
    rng = np.random.default_rng(0)
    margin = rng.normal(-1.5, 1.3, n)
    fields = {f"field {i}": rng.integers(0, size, n) for i, size in enumerate(VOCABULARIES[:6])}
    y = (rng.random(n) < expit(0.85 * margin + 0.25)).astype(np.int64)
    p = expit(margin)
    known = {**GUARDED, "ilps (paper's grid)": ILPSCalibrator(knots="paper")}
    known["temperature"] = TemperatureCalibrator()
    known["neural, one epoch"] = NeuralCalibrator(epochs=1)

    print(f"{n} rows, 6 fields.\n")
    print("| calibrator | fit, s | prediction, million rows/s |\n|---|---|---|")
    for name, calibrator in known.items():
        fit = fastest(lambda c=calibrator: c.fit(p, y, fields=fields))
        predict = fastest(lambda c=calibrator: c.predict_proba(p, fields=fields))
        print(f"| {name} | {fit:.2f} | {n / predict / 1e6:.1f} |")


def fastest(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the least processor time in seconds; set OMP_NUM_THREADS=1 for that of one core."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["guard", "ilps", "speed"])
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000, help="guard: rows of each part")
    parser.add_argument("--level", type=float, default=-1.0, help="guard: mean of the logits")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.what == "guard":
        report_guard(options.replicates, options.rows, options.level)
    elif options.what == "ilps":
        report_ilps(options.seeds)
    else:
        report_speed()


if __name__ == "__main__":
    main()
