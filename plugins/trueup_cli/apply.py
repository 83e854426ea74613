"""``trueup apply``: map the probabilities of a file through a calibrator that was saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.replace_file import replace_file_by
from trueup_cli.shell.failures import BadInput, in_options
from trueup_cli.shell.options import AS_JSON, NewFile
from trueup_cli.shell.output import echo, json_text, progress

if TYPE_CHECKING:
    import pandas as pd

    from trueup.calibrators import Calibrator

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("apply")
@click.argument("file", type=_FILE)
@click.option("--calibrator", required=True, type=_FOLDER, help="Folder of the saved calibrator.")
@click.option("--proba", required=True, help="Column of P(positive class).")
@click.option("--column", default=None, help="New column; calibrated_<proba> by default.")
@click.option(
    "--output",
    required=True,
    type=NewFile(),
    help="CSV or parquet file: all columns of FILE and the new one.",
)
@click.option("--overwrite", is_flag=True, help="Replace the output file.")
@AS_JSON
def apply(file: Path, **options: Any) -> None:
    """Calibrate the predictions in FILE, a CSV or parquet file, as `trueup calibrate` fitted it.

    Fields are read from the columns that have the names of the fit.

    Exit code: 0 done, 2 bad input.

    Example: trueup apply scored.parquet --calibrator site_offsets --proba p --output
    calibrated.parquet
    """
    _check_output(options)
    try:
        with in_options({"X": f"--proba {options['proba']!r}"}), progress("apply"):
            _apply(file, options)
    except ImportError as error:
        raise BadInput(f"{error}. Run: pip install 'trueup[cli,sklearn]'") from error


def _check_output(options: dict[str, Any]) -> None:
    output: Path = options["output"]
    if output.suffix not in (".csv", ".parquet"):
        raise BadInput(f"--output must be a .csv or .parquet file; got {str(output)!r}. Name one.")
    if output.exists() and not options["overwrite"]:
        raise BadInput(
            f"--output must be a new file; got {str(output)!r}, which exists. Name another, or "
            "pass --overwrite."
        )


def _apply(file: Path, options: dict[str, Any]) -> None:
    from trueup.calibrators import load_calibrator
    from trueup.read.frames import require_columns
    from trueup.read.tables import read_frame, rows_of_files

    frame, calibrator = read_frame(file), load_calibrator(options["calibrator"])
    fields, new = calibrator.fields_read_, options["column"] or f"calibrated_{options['proba']}"
    require_columns([options["proba"], *fields], list(frame.columns), file)
    if new in frame.columns:
        raise BadInput(f"--column must be a new column; got {new!r}. Name another.")
    columns = {name: frame[name] for name in fields}
    with rows_of_files(file, options["proba"]):
        proba = calibrator.predict_proba(frame[options["proba"]], fields=columns)
    if proba.shape[1] != 2:
        raise BadInput("--calibrator must be one of two classes. Use load_calibrator in Python.")
    _write(frame.assign(**{new: proba[:, 1]}), options["output"])
    output, remarks = str(options["output"]), _remarks(calibrator, frame)
    if options["as_json"]:
        content = {"n": len(frame), "output": output, "column": new, "remarks": remarks}
        echo(json_text(content))
    else:
        echo("\n".join([f"{len(frame)} rows written to {output}", *remarks]))


def _write(frame: pd.DataFrame, output: Path) -> None:
    write = frame.to_parquet if output.suffix == ".parquet" else frame.to_csv
    replace_file_by(output, lambda path: write(path, index=False))


def _remarks(calibrator: Calibrator, frame: pd.DataFrame) -> list[str]:
    """Say what the calibrator leaves as it was."""
    from trueup.calibrators.inputs import UNSEEN

    inner = getattr(calibrator, "calibrator_", calibrator)
    if inner is None:
        return ["the guard did not keep the calibrator: the probabilities are unchanged"]
    remarks = []
    for name, levels in getattr(inner, "levels_", {}).items():
        unseen = int((levels.codes(frame[name].to_numpy()) == UNSEEN).sum())
        if unseen:
            rows = f"{unseen} row{'s' * (unseen > 1)} with"
            remarks.append(f"{rows} a {name} that the fit had not seen: it adds no correction")
    return remarks
