"""Consensus against the field over 23 specifications, with and without a held-out reference.

    python benchmarks/consensus_suite.py --data FOLDER --raw RAW --trials 100 --seed 2

f is a network of the paper's recipe. "refit": only training rows are given, f is refitted
five-fold. "held-out": f is trained on one half, the other half is the labelled reference. All
numbers come from the same trials.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from consensus_specifications import SPECIFICATIONS, FloatArray, Network, Trials, draw
from consensus_tables import summarise

from trueup.monitoring import ConsensusEstimator, OneStepCheckModel
from trueup.monitoring.networks.fitted import Objective
from trueup.monitoring.panel.direct_loss import DirectLossEstimator
from trueup.monitoring.panel.fitting import out_of_fold_predictions

BLOCK = 25


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
    field["L"] = _one_step("l", seen, x_op, f_op)
    field["K*"] = estimate.members.get("one_step_train") or _one_step("k_star", seen, x_op, f_op)
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


def _one_step(
    objective: Objective,
    seen: tuple[FloatArray, FloatArray, FloatArray],
    x_op: FloatArray,
    f_op: FloatArray,
) -> float:
    check = OneStepCheckModel(objective).fit_encoded(*seen)
    return float(check.squared_errors(x_op, f_op).mean())


JUDGES = {"refit": refit_trial, "held-out": held_out_trial}


def collect(folder: Path, trials: int, seed: int, path: Path, minutes: float) -> None:
    """Append blocks of trials that the file does not hold yet, a JSON line each.

    All cells get their first block before any gets its second, so that a run which is stopped early
    has as many trials in each. No block is begun after so many minutes.
    """
    done = {tuple(json.loads(line)["key"]) for line in path.open()} if path.exists() else set()
    end = time.monotonic() + 60.0 * minutes
    for start, specification in product(range(0, trials, BLOCK), SPECIFICATIONS):
        asked = [(setting, specification, start) for setting in JUDGES]
        if done.issuperset(asked) or time.monotonic() > end:
            continue
        data = draw(specification, folder, trials, seed)
        for key in asked:
            if key in done or time.monotonic() > end:
                continue
            block = range(start, min(start + BLOCK, trials))
            found = [JUDGES[key[0]](data, index) for index in block]
            with path.open("a") as file:
                file.write(json.dumps({"key": key, "trials": found}) + "\n")
            print(*key, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--raw", type=Path, required=True, help="JSON lines; a rerun goes on.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    parser.add_argument("--minutes", type=float, default=np.inf, help="Begin no cell later.")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    collect(arguments.data, arguments.trials, arguments.seed, arguments.raw, arguments.minutes)
    title = (
        f"`consensus_suite.py --trials {arguments.trials} --seed {arguments.seed}`. No choice was "
        "made on seed 2. The interval score is in squared units of the standardised target; that "
        "of the soft shifts is decided by the trials of cpusmall in which the network is off by "
        "orders of magnitude."
    )
    arguments.out.write_text(summarise(arguments.raw, title))


if __name__ == "__main__":
    main()
