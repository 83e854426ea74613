"""From how many validation rows on the calibrated loss varies less over seeds than the vanilla one.

``python benchmarks/small_validation.py`` writes ``small_validation.md`` beside this file. Networks
that differ in their seed alone are trained on clicks and on a balanced problem, at a constant
learning rate and at one that decays to zero. Their losses are then taken on many small validation
sets, and the spread over seeds of both losses is compared on each set.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from trueup import evaluate
from trueup.errors import UndefinedMetricError

RESULT = Path(__file__).with_suffix(".md")
COLUMNS, N_TRAIN, BATCH = 20, 20_000, 64
SIZES = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """What is predicted: how often the label is one, and how the learning rate goes."""

    name: str
    intercept: float
    decays: bool


PROBLEMS = (
    Problem("half positive, constant rate", 0.0, decays=False),
    Problem("half positive, rate to zero", 0.0, decays=True),
    Problem("6% positive, constant rate", -3.4, decays=False),
    Problem("6% positive, rate to zero", -3.4, decays=True),
)


def rows(problem: Problem, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, COLUMNS, generator=generator)
    logit = problem.intercept + x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
    return x, torch.bernoulli(torch.sigmoid(logit), generator=generator)


def trained_logits(problem: Problem, seed: int, x_pool: torch.Tensor) -> Floats:
    """Return the logits of a network of one seed for all rows that sets are drawn from."""
    torch.manual_seed(seed)
    x, y = rows(problem, N_TRAIN, 0)
    model = nn.Sequential(nn.Linear(COLUMNS, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), 0.005)
    steps = torch.randperm(N_TRAIN).split(BATCH)
    for index, step in enumerate(steps):
        if problem.decays:
            optimizer.param_groups[0]["lr"] = 0.005 * (1 - index / len(steps))
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[step]), y[step]).backward()
        optimizer.step()
    with torch.no_grad():
        return np.asarray(model(x_pool).double().numpy())


@dataclass(frozen=True)
class SetOfRows:
    """Spread over seeds on one validation set, and how far the calibrated mean is off."""

    reduction: float
    bias: float


def of_sets(
    y: NDArray[np.int64], logits: list[Floats], n: int, n_sets: int
) -> Iterator[SetOfRows | None]:
    """Yield what each validation set of ``n`` rows says; None where a loss is undefined."""
    for index in range(n_sets):
        part = slice(index * n, (index + 1) * n)
        try:
            found = [evaluate(y[part], y_logit=one[part]) for one in logits]
        except UndefinedMetricError:  # one class only in the rows that fit a bias
            yield None
            continue
        vanilla = np.array([one.vanilla for one in found])
        calibrated = np.array([one.calibrated for one in found])
        best = [
            evaluate(y[part], y_logit=one[part] - _bias_of_all(y, one)).vanilla for one in logits
        ]
        yield SetOfRows(
            reduction=1.0 - float(calibrated.std(ddof=1) / vanilla.std(ddof=1)),
            bias=float((calibrated - best).mean()),
        )


_biases: dict[int, float] = {}


def _bias_of_all(y: NDArray[np.int64], logit: Floats) -> float:
    """Return the bias of a model on all rows there are, once for each model."""
    if id(logit) not in _biases:
        bias = evaluate(y, y_logit=logit).bias_term
        assert isinstance(bias, float)
        _biases[id(logit)] = bias
    return _biases[id(logit)]


def lines_of(problem: Problem, n_seeds: int, n_sets: int) -> Iterator[str]:
    x_pool, y_pool = rows(problem, n_sets * SIZES[-1], 1)
    y = y_pool.numpy().astype(np.int64)
    logits = [trained_logits(problem, seed, x_pool) for seed in range(n_seeds)]
    for n in SIZES:
        found = list(of_sets(y, logits, n, n_sets))
        defined = [one for one in found if one is not None]
        if len(defined) < n_sets / 2:
            yield f"| {problem.name} | {n} | {n * y.mean():.0f} | undefined mostly | | |"
            continue
        reductions = np.array([one.reduction for one in defined])
        low, middle, high = np.percentile(reductions, (10, 50, 90))
        bias = np.mean([one.bias for one in defined])
        yield (
            f"| {problem.name} | {n} | {n * min(y.mean(), 1 - y.mean()):.0f} | "
            f"{np.mean(reductions > 0):.0%} of {len(defined)} | "
            f"{middle:+.0%} [{low:+.0%}, {high:+.0%}] | {bias * n:.1f}/n |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--sets", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = [
        line for problem in PROBLEMS for line in lines_of(problem, options.seeds, options.sets)
    ]
    text = (
        "# Small validation sets\n\n"
        f"Networks of 32 hidden units on {COLUMNS} columns, one epoch of {N_TRAIN:,} rows, Adam at "
        f"0.005; {options.seeds} seeds, scored on {options.sets} validation sets of each size "
        "under `CrossFit(5)`. Less spread: the share of sets on which the calibrated log loss has "
        "the smaller standard deviation over seeds. Reduction of this standard deviation: median "
        "and 10% to 90% over sets. Bias: mean of the calibrated loss less the loss of the same "
        "rows at the bias term of all rows. Written by `python benchmarks/small_validation.py`.\n\n"
        "| problem | rows | of the rarer class | less spread | reduction | bias |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(table) + "\n"
    )
    RESULT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
