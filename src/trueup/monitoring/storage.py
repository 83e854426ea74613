"""Fitted state as named arrays in one ``.npz`` file that is read with pickle disallowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError

Arrays = dict[str, NDArray[Any]]


def nest(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays under ``name/``."""
    return {f"{name}/{key}": value for key, value in arrays.items()}


def unnest(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays that ``nest`` put under ``name/``; empty if there are none."""
    prefix = f"{name}/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def text(value: Any) -> NDArray[np.str_]:
    """Return a JSON value as an array of shape ()."""
    return np.array(json.dumps(value))


def untext(array: NDArray[Any]) -> Any:
    """Return the JSON value that ``text`` packed."""
    return json.loads(str(array))


def write(path: str | Path, kind: str, arrays: Arrays) -> None:
    """Write the arrays to exactly ``path``, marked with the kind of object that they are."""
    with Path(path).open("wb") as file:
        np.savez_compressed(file, kind=np.array(kind), **arrays)  # type: ignore[arg-type]  # numpy's stub takes no **dict


def read(path: str | Path, kind: str) -> Arrays:
    """Read what ``write`` wrote.

    Raises
    ------
    InvalidInputError
        If the file holds another kind of object.
    """
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    found = str(arrays.pop("kind", ""))
    if found != kind:
        raise InvalidInputError(
            f"path must be a saved {kind}; got {found or 'another file'!r}. "
            f"Give a file that {kind}.save wrote."
        )
    return arrays
