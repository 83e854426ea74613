"""The levels of the fields of a run, from the tables among its artifacts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from mlflow import MlflowClient
from numpy.typing import NDArray

from trueup_mlflow.write.items import ARTIFACT_FOLDER
from trueup_mlflow.write.runs import read_parquet

_STEP = re.compile(r"_step-?\d+\.parquet$")
COLUMNS = ("n", "observed", "predicted", "difference", "low", "high", "q_value", "offset")


@dataclass(frozen=True)
class Levels:
    """The levels of one field, the most surprising first; all arrays have an entry for each."""

    level: NDArray[np.str_]  # names
    # ``n``, ``observed``, ``predicted``, ``difference``, ``low``, ``high``, ``q_value`` and
    # ``offset``, as :class:`trueup.FieldCells` has them
    numbers: Mapping[str, NDArray[np.float64]]


def level_tables(client: MlflowClient, run_id: str) -> list[str]:
    """Return the tables of levels that a run has; those of single steps last."""
    start = f"{ARTIFACT_FOLDER}/fields_"
    paths = [str(found.path) for found in client.list_artifacts(run_id, ARTIFACT_FOLDER)]
    tables = [path for path in paths if path.startswith(start) and path.endswith(".parquet")]
    return sorted(tables, key=lambda path: (_STEP.search(path) is not None, path))


def read_levels(client: MlflowClient, run_id: str, path: str) -> dict[str, Levels]:
    """Return the levels of each field of a table that :func:`level_tables` named."""
    table = read_parquet(client, run_id, path)
    names = table["field"].unique().to_pylist()
    return {str(name): _levels(table.filter(pc.equal(table["field"], name))) for name in names}


def _levels(table: Any) -> Levels:
    numbers = {
        name: np.asarray(table[name].to_numpy(), dtype=np.float64)
        for name in COLUMNS
        if name in table.column_names
    }
    return Levels(np.asarray(table["level"].to_pylist(), dtype=np.str_), numbers)
