"""The levels of the fields of one evaluation, as a table of all and a figure of the worst."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from trueup import Evaluation, FieldCalibration
from trueup.redact import without_credentials
from trueup_mlflow.write.items import cells_key, figure_file, table_file
from trueup_mlflow.write.writer import RunWriter

if TYPE_CHECKING:
    from PIL.Image import Image


def log_fields(
    evaluation: Evaluation, key: str, writer: RunWriter, step: int | None = None
) -> bool:
    """Write ``trueup/fields_<K>.parquet`` and ``trueup/fields_<K>.png``; True if nothing failed.

    Both are those of the latest call. With a step its table is kept as
    ``trueup/fields_<K>_step<step>.parquet`` too.
    """
    fields = evaluation.fields
    if not fields:
        return True
    skip_key = cells_key(key)
    stems = [key] if step is None else [key, f"{key}_step{step}"]
    tables = [
        writer.log_table(lambda: cells_table(fields), table_file("fields", stem), skip_key)
        for stem in stems
    ]
    figure = writer.log_image(lambda: _draw(fields), figure_file("fields", key), skip_key)
    return all(tables) and figure


def cells_table(fields: Mapping[str, FieldCalibration]) -> pa.Table:
    """Return one row for each field and level: ``field`` and the columns of ``FieldCells``."""
    tables = []
    for name, measured in fields.items():
        names = pa.array([without_credentials(name)] * len(measured.cells.level), pa.string())
        tables.append(pa.table({"field": names, **measured.cells.to_columns()}))
    return pa.concat_tables(tables)


def _draw(fields: Mapping[str, FieldCalibration]) -> Image:
    from trueup_mlflow.write.field_figure import worst_cells

    return worst_cells(fields)
