"""Consensus against the field over 23 specifications, with and without a held-out reference.

    python benchmarks/consensus_suite.py --data FOLDER --trials 100 --seed 1 --out
    consensus_suite.md

f is a network of the paper's recipe. "refit": only training rows are given, f is refitted
five-fold. "held-out": f is trained on one half, the other half is the labelled reference. All
numbers come from the same trials.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Self

import torch

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))

from one_step_data import FloatArray, Trials, benchmark, synthetic

from trueup.monitoring import ConsensusEstimator, OneStepCheckModel
from trueup.monitoring.direct_loss import DirectLossEstimator
from trueup.monitoring.networks import StackedMLP, TrainingPlan, as_tensor, seeded
from trueup.monitoring.out_of_fold import out_of_fold_predictions
from trueup.monitoring.two_step import fit_mean

SETTINGS = ("refit", "held-out")
SPECIFICATIONS = (
    *(f"{name}:iid" for name in ("mg", "space-ga", "abalone", "cpusmall", "cadata")),
    *(f"{name}:soft" for name in ("mg", "space-ga", "abalone", "cpusmall", "cadata")),
    *(f"{name}:window" for name in ("mg", "space-ga", "abalone", "cpusmall")),
    *(f"{name}:hard" for name in ("mg", "space-ga", "abalone")),
    *(f"{kind}:{shift}" for kind in "ABC" for shift in ("none", "shifted")),
)


class Network:
    """A regression network with ``fit`` and ``predict``: the monitored model."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        generator = seeded(self.random_state)
        tensors = as_tensor(X[None]), as_tensor(y[None])
        self.network: StackedMLP = fit_mean(*tensors, 64, TrainingPlan(), generator)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return self.network.predict(X)[0]


def draw(specification: str, folder: Path, trials: int, seed: int) -> Trials:
    """Return the trials of a specification."""
    name, shift = specification.split(":")
    if name in "ABC":
        law = (0.0, 1.0) if shift == "none" else (1.0, 0.5)
        return synthetic(name, trials, seed, m=5_000, op=law)
    return benchmark(folder, name, trials, seed, shift)


def refit_trial(data: Trials, index: int) -> dict[str, Any]:
    """Judge f with nothing but its training rows."""
    x, y, x_op = data.x[index], data.y[index], data.x_op[index]
    model = Network(index).fit(x, y)
    f, f_op = model.predict(x), model.predict(x_op)
    unseen = out_of_fold_predictions(model, x, y, probability=False, random_state=0)
    consensus = ConsensusEstimator(model, reference="train").fit(x, f, y)
    field = {"cross-validation": float(((y - unseen) ** 2).mean())}
    return _judge(consensus, data, index, f_op, field, (x, unseen, y), (x, f, y))


def held_out_trial(data: Trials, index: int) -> dict[str, Any]:
    """Judge f with a labelled reference that it has not seen."""
    x, y, x_op = data.x[index], data.y[index], data.x_op[index]
    half = len(y) // 2
    model = Network(index).fit(x[:half], y[:half])
    f, f_op = model.predict(x), model.predict(x_op)
    reference = x[half:], f[half:], y[half:]
    consensus = ConsensusEstimator().fit(*reference)
    field = {"cross-validation": float(((y - f)[half:] ** 2).mean())}
    return _judge(consensus, data, index, f_op, field, reference, (x[:half], f[:half], y[:half]))


def _judge(
    consensus: ConsensusEstimator,
    data: Trials,
    index: int,
    f_op: FloatArray,
    field: dict[str, float],
    unseen: tuple[FloatArray, FloatArray, FloatArray],
    seen: tuple[FloatArray, FloatArray, FloatArray],
) -> dict[str, Any]:
    x_op = data.x_op[index]
    estimate = consensus.estimate(x_op, f_op)
    errors = (unseen[2] - unseen[1]) ** 2
    rows = DirectLossEstimator().fit(unseen[0], unseen[1], errors).squared_errors(x_op, f_op)
    field["direct loss"] = float(rows.mean())
    for name, objective in (("K*", "k_star"), ("L", "l")):
        check = OneStepCheckModel(objective).fit_encoded(*seen)  # type: ignore[arg-type]
        field[name] = float(check.squared_errors(x_op, f_op).mean())
    field["training MSE"] = float(((seen[2] - seen[1]) ** 2).mean())
    reach = 3.0 * errors.std() / len(x_op) ** 0.5
    return {
        "true": float(((data.y_op[index] - f_op) ** 2).mean()),
        "consensus": estimate.mse,
        "low": estimate.low,
        "high": estimate.high,
        "trusted": estimate.trusted,
        "direct low": max(field["direct loss"] - reach, 0.0),
        "direct high": field["direct loss"] + reach,
        **field,
        "members": dict(estimate.members),
        "diagnostics": dict(estimate.diagnostics),
    }


def collect(folder: Path, trials: int, seed: int, path: Path) -> None:
    """Append the trials of each specification that the file does not hold yet, a JSON line each."""
    done = {json.loads(line)["key"] for line in path.open()} if path.exists() else set()
    for specification in SPECIFICATIONS:
        data = draw(specification, folder, trials, seed)
        for setting, judge in zip(SETTINGS, (refit_trial, held_out_trial), strict=True):
            key = f"{setting}/{specification}"
            if key in done:
                continue
            found = [judge(data, index) for index in range(trials)]
            with path.open("a") as file:
                file.write(json.dumps({"key": key, "trials": found}) + "\n")
            print(key, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--raw", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    collect(arguments.data, arguments.trials, arguments.seed, arguments.raw)


if __name__ == "__main__":
    main()
