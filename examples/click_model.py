"""A click-model-like network that predicts which flights of 2013 were late.

Two pipelines share everything but the architecture: an embedding of each categorical field
followed by a multilayer perceptron, and DeepFM, which adds linear and pairwise terms (Guo et al.
2017). One epoch, as in click-through practice, with a constant learning rate or one that decays to
zero.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

DATA = Path(__file__).with_name("data") / "flights_2013.parquet"
TRAIN_ROWS, VALIDATION_ROWS = 90_000, 30_000


@dataclass(frozen=True)
class Pipeline:
    """Everything that is fixed before the seed is drawn."""

    name: str
    architecture: str = "mlp"
    decay: bool = False
    learning_rate: float = 2e-3
    embedding: int = 8
    width: int = 64
    batch_size: int = 256

    def params(self, seed: int) -> dict[str, str | int | float | bool]:
        """Return what an MLflow run of one seed should say about itself."""
        values = asdict(self)
        return {"pipeline": values.pop("name"), **values, "seed": seed}


DEEPFM, MLP = Pipeline("DeepFM", "deepfm"), Pipeline("MLP", "mlp")
DEEPFM_DECAYED = Pipeline("DeepFM, rate decays to 0", "deepfm", decay=True)
MLP_DECAYED = Pipeline("MLP, rate decays to 0", "mlp", decay=True)
PIPELINES = {p.name: p for p in (DEEPFM, MLP, DEEPFM_DECAYED, MLP_DECAYED)}


@dataclass(frozen=True)
class Rows:
    """Integer codes of the fields, shape (n, n_fields), and labels, shape (n,)."""

    codes: torch.Tensor
    late: torch.Tensor
    row_id: np.ndarray


@dataclass(frozen=True)
class Flights:
    """A fixed random split: the rows never depend on the seed of a training run."""

    train: Rows
    validation: Rows
    n_levels: tuple[int, ...]
    validation_fields: pd.DataFrame


@cache
def load_flights() -> Flights:
    table = pd.read_parquet(DATA)
    day = pd.to_datetime({"year": 2013, "month": table["month"], "day": table["day"]})
    fields = pd.DataFrame(
        {
            **{name: table[name] for name in ("carrier", "flight", "tailnum", "origin", "dest")},
            "hour": table["hour"],
            "weekday": day.dt.dayofweek,
            "month": table["month"],
            "distance": table["distance"] // 200,
            "day": day.dt.dayofyear,
        }
    )
    codes = np.stack([pd.factorize(fields[name])[0] for name in fields], axis=1)
    order = np.random.default_rng(0).permutation(len(table))[: TRAIN_ROWS + VALIDATION_ROWS]
    late = table["late"].to_numpy(np.float32)

    def rows(index: np.ndarray) -> Rows:
        return Rows(torch.from_numpy(codes[index]), torch.from_numpy(late[index]), index)

    validation = order[TRAIN_ROWS:]
    return Flights(
        train=rows(order[:TRAIN_ROWS]),
        validation=rows(validation),
        n_levels=tuple(int(n) for n in codes.max(axis=0) + 1),
        validation_fields=fields.iloc[validation].reset_index(drop=True),
    )


class ClickModel(nn.Module):
    """Embeddings and a perceptron; DeepFM adds a linear and a factorised pairwise term."""

    def __init__(self, n_levels: tuple[int, ...], pipeline: Pipeline) -> None:
        super().__init__()
        self.is_deepfm = pipeline.architecture == "deepfm"
        self.register_buffer("offset", torch.tensor(np.r_[0, np.cumsum(n_levels)[:-1]]))
        self.embedding = nn.Embedding(sum(n_levels), pipeline.embedding)
        self.linear = nn.Embedding(sum(n_levels), 1)
        nn.init.normal_(self.embedding.weight, std=0.02 if self.is_deepfm else 0.05)
        nn.init.zeros_(self.linear.weight)
        width = pipeline.width
        self.perceptron = nn.Sequential(
            nn.Linear(len(n_levels) * pipeline.embedding, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        index = codes + self.offset
        embedded = self.embedding(index)
        logit = self.perceptron(embedded.flatten(1))[:, 0]
        if self.is_deepfm:
            total = embedded.sum(1)
            pairwise = 0.5 * (total * total - (embedded * embedded).sum(1)).sum(1)
            logit = logit + self.linear(index).sum((1, 2)) + pairwise
        return logit


def train(pipeline: Pipeline, seed: int) -> np.ndarray:
    """Train one model for one epoch and return its logits on the validation rows, shape (n,)."""
    torch.manual_seed(seed)
    flights = load_flights()
    model = ClickModel(flights.n_levels, pipeline)
    optimizer = torch.optim.Adam(model.parameters(), lr=pipeline.learning_rate, fused=True)
    # An own generator: the same seed means the same data order whatever the architecture drew.
    order = torch.randperm(len(flights.train.late), generator=torch.Generator().manual_seed(seed))
    batches = order.split(pipeline.batch_size)
    for step, batch in enumerate(batches):
        if pipeline.decay:
            for group in optimizer.param_groups:
                group["lr"] = pipeline.learning_rate * (1 - step / len(batches))
        optimizer.zero_grad(set_to_none=True)
        logit = model(flights.train.codes[batch])
        nn.functional.binary_cross_entropy_with_logits(logit, flights.train.late[batch]).backward()
        optimizer.step()
    with torch.inference_mode():
        return model(flights.validation.codes).double().numpy()
