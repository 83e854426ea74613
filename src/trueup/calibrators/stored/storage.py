"""Calibrators as JSON and npz: nothing that is read back can run code.

``calibrator.json`` names the class, its parameters and its state, and holds the digest of the
arrays in ``calibrator.npz``. Replacing it is the one step that turns the calibrator in a folder
into another: until then the new arrays wait in ``calibrator.new.npz``.
"""

from __future__ import annotations

import json
from dataclasses import fields as record_fields
from dataclasses import is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import trueup
from trueup.arrays import Arrays, from_npz, to_npz
from trueup.calibrators.base import Calibrator
from trueup.calibrators.stored.classes import read_calibrator
from trueup.calibrators.stored.nodes import Node
from trueup.errors import CorruptFileError, InvalidInputError
from trueup.replace_file import replace_file

_FORMAT = 1
_COMMON = ("classes_", "n_features_in_")
_DOCUMENT, _ARRAYS, _NEW_ARRAYS = "calibrator.json", "calibrator.npz", "calibrator.new.npz"
_LARGEST_DOCUMENT = 16 * 2**20
_ATTEMPTS = 3


def save_calibrator(calibrator: Calibrator, folder: Path) -> None:
    """Write the calibrator into the folder, which is made if it is missing.

    Whenever the process ends, the folder holds the calibrator that was there before or this one.

    Raises
    ------
    InvalidInputError
        If the state is none that :func:`load_calibrator` takes, for example of a class of your own.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from trueup.calibrators import ShiftCalibrator, load_calibrator, save_calibrator
    >>> folder = Path(tempfile.mkdtemp())
    >>> save_calibrator(ShiftCalibrator().fit([0.3, 0.6], [0, 1]), folder)
    >>> load_calibrator(folder)
    ShiftCalibrator()
    """
    arrays: Arrays = {}
    packed = _pack(calibrator, arrays)
    read_calibrator(Node(packed, "calibrator", dict(arrays)))
    data = to_npz(arrays)
    document = {
        "format": _FORMAT,
        "trueup": trueup.__version__,
        "arrays": _digest(data),
        "calibrator": packed,
    }
    folder.mkdir(parents=True, exist_ok=True)
    new_arrays = replace_file(folder / _NEW_ARRAYS, data)
    replace_file(folder / _DOCUMENT, json.dumps(document, indent=1))
    new_arrays.replace(folder / _ARRAYS)


def load_calibrator(path: str | Path) -> Calibrator:
    """Read a calibrator of any class of trueup's that was written by its ``save``.

    Parameters
    ----------
    path : str or Path
        The folder. It may come from anywhere: what is read can't run code, and takes no more memory
        than a small multiple of its files.

    Raises
    ------
    InvalidInputError
        If the folder holds no calibrator, or one of a newer format.
    CorruptFileError
        If a file is damaged, cut off or forged; it is an InvalidInputError.

    Examples
    --------
    >>> import tempfile
    >>> from trueup.calibrators import ShiftCalibrator, load_calibrator
    >>> folder = tempfile.mkdtemp()
    >>> ShiftCalibrator().fit([0.3, 0.6], [0, 1]).save(folder)
    >>> load_calibrator(folder)
    ShiftCalibrator()
    """
    if not isinstance(path, str | Path):
        raise InvalidInputError(
            "path must be the path of a folder", f"{type(path).__name__}", "Pass text or a Path."
        )
    folder = Path(path)
    if not (folder / _DOCUMENT).is_file():
        raise InvalidInputError(
            f"path must hold {_DOCUMENT}", repr(str(folder)), "Pass the folder given to save."
        )
    document, arrays = _read(folder)
    node = Node(document.get("calibrator"), "calibrator", arrays)
    try:
        calibrator = read_calibrator(node)
    except RecursionError:
        raise CorruptFileError(
            "path must hold a calibrator", "guards inside of guards", "Fetch another copy."
        ) from None
    if arrays:
        raise CorruptFileError(
            "path must hold the arrays of the calibrator and no others",
            f"{sorted(arrays)[:5]}",
            "Save the calibrator again, or fetch another copy.",
        )
    return calibrator


def _read(folder: Path) -> tuple[dict[str, Any], Arrays]:
    """Return the document and the arrays that belong to it, while others may be saved."""
    for _ in range(_ATTEMPTS):
        document = _read_document(folder / _DOCUMENT)
        for name in (_ARRAYS, _NEW_ARRAYS):
            file = folder / name
            data = file.read_bytes() if file.is_file() else None
            if data is not None and document.get("arrays", _digest(data)) == _digest(data):
                return document, from_npz(data, f"path must hold {_ARRAYS} as save wrote it")
    raise CorruptFileError(
        f"path must hold {_ARRAYS} as it was saved with {_DOCUMENT}",
        "other bytes or none, and nothing else is read, with allow_pickle=False",
        "Save the calibrator again, or fetch another copy.",
    )


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _read_document(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            text = stream.read(_LARGEST_DOCUMENT + 1)
        document = json.loads(text) if len(text) <= _LARGEST_DOCUMENT else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise CorruptFileError(
            f"path must hold a {_DOCUMENT} that save wrote",
            "one that can't be read",
            "Save the calibrator again, or fetch another copy.",
        )
    if document["format"] > _FORMAT:
        raise InvalidInputError(
            f"path must hold format {_FORMAT} or older", f"{document['format']}", "Upgrade trueup."
        )
    return document


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
    fitted = (*_COMMON, *calibrator.state_names) if calibrator.__sklearn_is_fitted__() else ()
    state = {name: getattr(calibrator, name) for name in fitted}
    return {
        "class": type(calibrator).__name__,
        "params": _pack(calibrator.get_params(deep=False), arrays),
        "state": _pack(state, arrays),
    }
