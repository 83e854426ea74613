"""Tables 1-6 of "Field-aware Calibration" (Pan et al., 2020) on real data with fields.

The base network is the paper's: an embedding of 256 numbers per column, two ReLU layers of 200
units, Adam with rate 0.001, one epoch. Usage::

    python benchmarks/reproduce/field_aware.py --data FOLDER [--only flights adult] [--seeds 3]

Scores are kept in a file, so that a later call with more seeds or data sets goes on from there.
Lending Club, Criteo, Avazu and Porto Seguro are read as well where FOLDER holds a folder of that
name with the original file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from field_aware_data import ORIGINAL, REAL, Table
from field_aware_tables import Numbers, claims, markdown, over_seeds
from numpy.typing import NDArray
from scipy.special import expit
from tqdm import tqdm

from trueup.calibrators import (
    Calibrator,
    CalibratorScore,
    FieldOffsetCalibrator,
    HistogramCalibrator,
    ILPSCalibrator,
    IsotonicCalibrator,
    NeuralCalibrator,
    PlattCalibrator,
    compare_calibrators,
)
from trueup.calibrators.inputs import fit_levels
from trueup.calibrators.networks.network import embedding_rows, stacked_rows

EMBEDDING, HIDDEN, RATE, BATCH = 256, 200, 1e-3, 256
PAPERS_SIZE = {
    "embedding": EMBEDDING,
    "hidden": (HIDDEN, HIDDEN),
    "epochs": 1,
    "validation_fraction": 0.0,
    "weight_decay": 0.0,
    "offsets": False,
}

Rows = NDArray[np.intp]


class BaseNetwork(torch.nn.Module):
    """The paper's f(x): concatenated embeddings into two ReLU layers."""

    def __init__(self, n_rows: int, n_columns: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(n_rows, EMBEDDING, padding_idx=0)
        torch.nn.init.normal_(self.embedding.weight, std=0.05)
        torch.nn.init.zeros_(self.embedding.weight[0])
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(n_columns * EMBEDDING, HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, 1),
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the logits of shape (n,)."""
        logit: torch.Tensor = self.layers(self.embedding(rows).flatten(1))[:, 0]
        return logit


@dataclass(frozen=True)
class Encoded:
    """A table as rows of one embedding table; values unseen in training share row 0."""

    rows: torch.Tensor
    label: torch.Tensor
    n_rows: int

    @classmethod
    def of(cls, table: Table, fitted_on: Rows) -> Encoded:
        levels = {name: fit_levels(column[fitted_on]) for name, column in table.columns.items()}
        codes = [levels[name].codes(column) for name, column in table.columns.items()]
        n_codes = [level.n_codes for level in levels.values()]
        rows = embedding_rows(np.stack(codes, axis=1), stacked_rows(n_codes))
        return cls(torch.from_numpy(rows), torch.from_numpy(table.y).float(), sum(n_codes))

    def network(self, seed: int) -> BaseNetwork:
        torch.manual_seed(seed)
        return BaseNetwork(self.n_rows, self.rows.shape[1])

    def train(self, network: BaseNetwork, on: Rows, seed: int) -> BaseNetwork:
        """Train one epoch with a fresh Adam."""
        optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
        generator = torch.Generator().manual_seed(seed)
        order = torch.from_numpy(on)[torch.randperm(len(on), generator=generator)]
        for batch in torch.split(order, BATCH):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                network(self.rows[batch]), self.label[batch]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return network

    def predict(self, network: BaseNetwork) -> NDArray[np.float64]:
        """Return the probability of every row."""
        with torch.no_grad():
            parts = [network(part) for part in torch.split(self.rows, 8192)]
        return np.asarray(expit(torch.cat(parts).double().numpy()))


def calibrators(field: str, seed: int) -> dict[str, Calibrator]:
    """Return the rows of the tables; what the paper does not name is trueup's."""
    return {
        "histogram": HistogramCalibrator(),
        "isotonic": IsotonicCalibrator(),
        "platt": PlattCalibrator(),
        "ilps": ILPSCalibrator(),
        "ilps (paper's SGD)": ILPSCalibrator(knots="paper", solver="sgd", random_state=seed),
        "neural, z only": NeuralCalibrator(fields=field, random_state=seed),
        "neural": NeuralCalibrator(random_state=seed),
        "neural, z only (paper's size)": NeuralCalibrator(
            fields=field, random_state=seed, **PAPERS_SIZE
        ),
        "neural (paper's size)": NeuralCalibrator(random_state=seed, **PAPERS_SIZE),
        "field offset, z only": FieldOffsetCalibrator(fields=field),
        "field offset": FieldOffsetCalibrator(),
    }


def one_seed(table: Table, seed: int) -> list[CalibratorScore]:
    """Train, calibrate, swap development and training rows, and score all on the test rows."""
    train, dev, test = table.parts()
    encoded = Encoded.of(table, np.concatenate([train, dev]))
    first = encoded.train(encoded.network(seed), train, seed)
    p = encoded.predict(first)
    updated = encoded.predict(encoded.train(first, dev, seed + 1000))
    scores = scored(table, p, dev, test, calibrators(table.field, seed), updated=updated)

    p = encoded.predict(encoded.train(encoded.network(seed), dev, seed))
    swapped = {
        "ilps": ILPSCalibrator(),
        "neural": NeuralCalibrator(random_state=seed),
    }
    base_first = scored(table, p, train, test, swapped, guard=False)
    names = ("base (dev only)", "ilps (dev -> train)", "neural (dev -> train)")
    return scores + [
        replace(score, name=name) for score, name in zip(base_first, names, strict=True)
    ]


def scored(
    table: Table,
    p: NDArray[np.float64],
    dev: Rows,
    test: Rows,
    known: dict[str, Calibrator],
    *,
    updated: NDArray[np.float64] | None = None,
    guard: bool = True,
) -> list[CalibratorScore]:
    """Fit on the rows ``dev`` and score on the rows ``test``."""
    rows = np.concatenate([dev, test])
    result = compare_calibrators(
        table.y[rows],
        p[rows],
        {name: column[rows] for name, column in table.columns.items()},
        field=table.field,
        dev_fraction=len(dev) / len(rows),
        y_proba_updated=None if updated is None else updated[rows],
        calibrators=known,
        guard=guard,
    )
    return list(result.scores)


def tables(data: Path, only: list[str], rows: int | None) -> Iterable[tuple[str, Table]]:
    """Yield the data sets that are there."""
    for name, read in REAL.items():
        if name in only or not only:
            yield name, read(data)
    for name, load in ORIGINAL.items():
        if (data / name).is_dir() and (name in only or not only):
            yield name, load(data / name, rows)


def known_scores(file: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the scores by data set and seed that earlier calls have left in the file."""
    return json.loads(file.read_text()) if file.is_file() else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--only", nargs="*", default=[], help="names of data sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="rows read of an original file")
    parser.add_argument("--out", type=Path, default=Path("field_aware_tables.md"))
    parser.add_argument("--scores", type=Path, default=Path("field_aware_scores.json"))
    options = parser.parse_args()
    scores, texts = known_scores(options.scores), []
    all_means: dict[str, Numbers] = {}
    for name, table in tables(options.data, options.only, options.rows):
        of_set = scores.setdefault(name, {})
        for seed in tqdm(range(options.seeds), desc=name):
            if str(seed) not in of_set:
                found = one_seed(table, seed)
                of_set[str(seed)] = [asdict(replace(score, decision=None)) for score in found]
                options.scores.write_text(json.dumps(scores))
        runs = [[CalibratorScore(**score) for score in run] for run in of_set.values()]
        all_means[name] = over_seeds(runs, fmean)
        texts.append(markdown(name, table, runs))
        print(texts[-1], flush=True)
    summary = claims(all_means)
    print(summary)
    options.out.write_text("\n".join([summary, *texts]))


if __name__ == "__main__":
    main()
