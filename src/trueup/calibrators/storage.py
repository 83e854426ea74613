"""Calibrators as JSON and npz: nothing that is read back can run code."""

from __future__ import annotations

import json
from dataclasses import fields as record_fields
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import trueup
from trueup.calibrators.base import Calibrator
from trueup.errors import InvalidInputError

_RECORDS = {
    "FieldLevels": "trueup.calibrators.levels",
    "GuardDecision": "trueup.calibrators.guard_decision",
    "LinePlot": "trueup.calibrators.line_plot",
    "Network": "trueup.calibrators.network",
    "OriginChange": "trueup.calibrators.guard_decision",
    "SharedLinePlot": "trueup.calibrators.shared_line_plot",
}
_FORMAT = 1
_COMMON = ("classes_", "n_features_in_")

Arrays = dict[str, NDArray[Any]]


def save_calibrator(calibrator: Calibrator, folder: Path) -> None:
    """Write ``calibrator.json`` and ``calibrator.npz`` into the folder; make it if missing."""
    arrays: Arrays = {}
    document = {
        "format": _FORMAT,
        "trueup": trueup.__version__,
        "calibrator": _pack(calibrator, arrays),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "calibrator.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    np.savez_compressed(folder / "calibrator.npz", allow_pickle=False, **arrays)


def load_calibrator(path: str | Path) -> Calibrator:
    """Read a calibrator of any class that was written by its ``save``.

    Parameters
    ----------
    path : str or Path
        The folder.

    Raises
    ------
    InvalidInputError
        If the folder holds no calibrator, or one of a newer format.
    """
    folder = Path(path)
    if not (folder / "calibrator.json").is_file():
        raise InvalidInputError(
            f"path must hold calibrator.json; got {str(folder)!r}. Pass the folder given to save."
        )
    document = json.loads((folder / "calibrator.json").read_text(encoding="utf-8"))
    if document["format"] > _FORMAT:
        raise InvalidInputError(
            f"path must hold format {_FORMAT} or older; got {document['format']}. Upgrade trueup."
        )
    with np.load(folder / "calibrator.npz", allow_pickle=False) as arrays:
        calibrator: Calibrator = _unpack(document["calibrator"], dict(arrays))
    return calibrator


def _pack(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, Calibrator):
        return _pack_calibrator(value, arrays)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value.astype(np.str_) if value.dtype == object else value
        return {"array": name}
    if is_dataclass(value):
        parts = {part.name: getattr(value, part.name) for part in record_fields(value)}
        return {"record": type(value).__name__, "parts": _pack(parts, arrays)}
    if isinstance(value, dict):
        return {"mapping": {name: _pack(part, arrays) for name, part in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"sequence": [_pack(part, arrays) for part in value]}
    return value


def _pack_calibrator(calibrator: Calibrator, arrays: Arrays) -> Any:
    fitted = [name for name in (*_COMMON, *calibrator.state_names) if hasattr(calibrator, name)]
    state = {name: getattr(calibrator, name) for name in fitted}
    return {
        "class": type(calibrator).__name__,
        "params": _pack(calibrator.get_params(deep=False), arrays),
        "state": _pack(state, arrays),
    }


def _unpack(value: Any, arrays: Arrays) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "mapping" in value:
        return {name: _unpack(part, arrays) for name, part in value["mapping"].items()}
    if "sequence" in value:
        return tuple(_unpack(part, arrays) for part in value["sequence"])
    if "record" in value:
        record = getattr(import_module(_RECORDS[value["record"]]), value["record"])
        return record(**_unpack(value["parts"], arrays))
    calibrators = import_module("trueup.calibrators")
    calibrator = getattr(calibrators, value["class"])(**_unpack(value["params"], arrays))
    for name, part in _unpack(value["state"], arrays).items():
        setattr(calibrator, name, part)
    return calibrator
