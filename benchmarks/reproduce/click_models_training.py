"""Train all seeds of a pipeline together for one epoch and keep their scores in files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from click_models_data import ClickData
from click_models_layers import Draws
from click_models_networks import Design, Network, build_network
from numpy.typing import NDArray

from trueup import CrossFit, HoldOut, evaluate

Schedule = Literal["constant", "decay"]
RECIPE = 1
"""Raise it when the same pipeline and seed would give other scores: old files are then not read."""
ORDER_SEEDS = 1_000_000
"""Added to a seed for the order of the data, which must not be the stream of the weights."""
ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class Pipeline:
    """Everything that is fixed before the seed is drawn.

    Attributes
    ----------
    name : str
        As in the tables.
    design : Design
        The network.
    optimizer : {"adam", "sgd"}
        What moves the weights.
    learning_rate : float
        Its rate: of all steps, or of the first where it decays linearly to zero.
    batch_size : int
        Rows of a step; an incomplete last batch is dropped.
    l2 : float
        Weight of the squared embeddings and first-order weights in the loss.
    without : {"", "numbers", "field"}
        Inputs that are left out.
    """

    name: str
    design: Design
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 2e-3
    batch_size: int = 256
    l2: float = 0.0
    without: Literal["", "numbers", "field"] = ""


@dataclass(frozen=True)
class Scores:
    """Log losses of the seeds of one pipeline, each an array of shape (n_seeds,).

    Attributes
    ----------
    vanilla, crossfit
        On all validation rows: plain, and calibrated over five folds.
    holdout, vanilla_on_holdout
        On the rows that the papers' split leaves for scoring: calibrated, and plain.
    bias_term
        Bias of the logits, fitted on all validation rows.
    cpu_seconds
        Time of the processor that a seed took.
    """

    vanilla: NDArray[np.float64]
    crossfit: NDArray[np.float64]
    holdout: NDArray[np.float64]
    vanilla_on_holdout: NDArray[np.float64]
    bias_term: NDArray[np.float64]
    cpu_seconds: NDArray[np.float64]


def join(parts: Sequence[Scores]) -> Scores:
    """Return the scores of all seeds in order."""
    columns = (field.name for field in fields(Scores))
    return Scores(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in columns})


def scores_of(
    pipeline: Pipeline,
    data: ClickData,
    blocks: Sequence[Sequence[int]],
    schedule: Schedule,
    *,
    cache: Path,
    device: str = "cpu",
) -> Iterator[Scores]:
    """Yield the scores of each block of seeds, from its file where it was trained before."""
    for seeds in blocks:
        path = cache / data.name / _file_name(pipeline, data, seeds, schedule)
        if path.exists():
            with np.load(path) as stored:
                yield Scores(**stored)
            continue
        scores = train_and_score(pipeline, data, seeds, schedule, device=device)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(unfinished, **vars(scores))
        unfinished.replace(path)
        yield scores


def _file_name(
    pipeline: Pipeline, data: ClickData, seeds: Sequence[int], schedule: Schedule
) -> str:
    key = repr((RECIPE, torch.__version__, replace(pipeline, name=""), data.digest(), schedule))
    digest = blake2b(key.encode(), digest_size=8).hexdigest()
    return f"{pipeline.design.architecture}-{schedule}-{seeds[0]}-{seeds[-1]}-{digest}.npz"


def train_and_score(
    pipeline: Pipeline,
    data: ClickData,
    seeds: Sequence[int],
    schedule: Schedule,
    *,
    device: str = "cpu",
) -> Scores:
    """Train the seeds and return their scores."""
    start = time.process_time()
    logits = train(pipeline, data, seeds, schedule, device=device)
    seconds = (time.process_time() - start) / len(seeds)
    y, row_id = data.y[data.n_train :], data.row_id[data.n_train :]
    rows = [_score(y, logit, row_id, data.bias_fraction) for logit in logits]
    return Scores(*np.array(rows).T, cpu_seconds=np.full(len(seeds), seconds))


def _score(
    y: NDArray[np.float32],
    logit: NDArray[np.float64],
    row_id: NDArray[np.int64],
    bias_fraction: float,
) -> tuple[float, ...]:
    all_rows = evaluate(y, y_logit=logit, split=CrossFit(), row_id=row_id)
    remaining = evaluate(y, y_logit=logit, split=HoldOut(bias_fraction), row_id=row_id)
    return (
        all_rows.vanilla,
        all_rows.calibrated,
        remaining.calibrated,
        remaining.vanilla_on_scored_rows,
        float(np.ravel(all_rows.bias_term)[0]),
    )


def train(
    pipeline: Pipeline,
    data: ClickData,
    seeds: Sequence[int],
    schedule: Schedule,
    *,
    device: str = "cpu",
) -> NDArray[np.float64]:
    """Train the seeds for one epoch and return their logits on validation, (n_seeds, n_rows)."""
    codes, numbers = (torch.from_numpy(part).to(device) for part in _inputs(pipeline, data))
    y = torch.from_numpy(data.y).to(device)
    n_levels = tuple(int(n) for n in codes.amax(0) + 1)
    network = build_network(pipeline.design, n_levels, numbers.shape[1], Draws(seeds)).to(device)
    optimizer = _optimizer(pipeline, network)
    batches = _order(seeds, data.n_train).to(device).split(pipeline.batch_size, dim=1)
    n_steps = data.n_train // pipeline.batch_size
    for step, batch in enumerate(batches[:n_steps]):
        if schedule == "decay":
            for group in optimizer.param_groups:
                group["lr"] = pipeline.learning_rate * (1.0 - step / n_steps)
        optimizer.zero_grad(set_to_none=True)
        logit = network(codes[batch], numbers[batch])
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            logit, y[batch], reduction="sum"
        )
        (losses / pipeline.batch_size).backward()
        optimizer.step()
    return _predict(network, codes[data.n_train :], numbers[data.n_train :], len(seeds))


def _inputs(pipeline: Pipeline, data: ClickData) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    codes, numbers = data.codes, data.numbers
    if pipeline.without == "field":
        codes = np.delete(codes, data.removed_field, axis=1)
    if pipeline.without == "numbers":
        numbers = numbers[:, :0]
    return np.ascontiguousarray(codes), np.ascontiguousarray(numbers)


def _optimizer(pipeline: Pipeline, network: Network) -> torch.optim.Optimizer:
    tables = network.tables()
    others = [p for p in network.parameters() if all(p is not table for table in tables)]
    # Weight decay adds w times its weight to the gradient: half of what l2 * w**2 adds.
    groups = [{"params": tables, "weight_decay": 2.0 * pipeline.l2}, {"params": others}]
    if pipeline.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=pipeline.learning_rate, fused=True)
    return torch.optim.Adam(groups, lr=pipeline.learning_rate, fused=True)


def _order(seeds: Sequence[int], n: int) -> torch.Tensor:
    """Return one order of the training rows per seed, the same whatever the pipeline."""
    generators = [torch.Generator().manual_seed(ORDER_SEEDS + seed) for seed in seeds]
    return torch.stack([torch.randperm(n, generator=generator) for generator in generators])


@torch.inference_mode()
def _predict(
    network: Network, codes: torch.Tensor, numbers: torch.Tensor, n_seeds: int
) -> NDArray[np.float64]:
    network.eval()
    parts = [
        network(c.expand(n_seeds, *c.shape), x.expand(n_seeds, *x.shape))
        for c, x in zip(codes.split(ROWS_AT_ONCE), numbers.split(ROWS_AT_ONCE), strict=True)
    ]
    return torch.cat(parts, 1).double().cpu().numpy()
