"""What a stored calibrator may hold: readers that take a value of one kind, or refuse it.

A reader turns one node of the document into a value. There is nothing else that could be read: the
table in :mod:`trueup.calibrators.stored.classes` is made of these, and names no code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from math import inf, isfinite
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from trueup.arrays import Arrays
from trueup.errors import CorruptFileError


@dataclass(frozen=True)
class Node:
    """A place in the document: what JSON holds there, and its name in messages.

    ``arrays`` are those that have not been read yet; an array belongs to one place.
    """

    value: Any
    name: str
    arrays: Arrays

    def at(self, key: str | int, value: Any) -> Node:
        return Node(value, f"{self.name}.{key}", self.arrays)

    def entries(self, kind: str) -> Mapping[str, Any]:
        """Return the content of a dictionary that is marked as one of a kind."""
        if isinstance(self.value, dict) and isinstance(self.value.get(kind), dict):
            content: Mapping[str, Any] = self.value[kind]
            return content
        raise self.refusal(f"a {kind}")

    def refusal(self, rule: str) -> CorruptFileError:
        got = repr(self.value)
        return CorruptFileError(
            f"path must hold {rule} as {self.name}",
            f"{got[:80]}{'...' * (len(got) > 80)}",
            "Save the calibrator again, or fetch another copy.",
        )


Reader = Callable[[Node], Any]


def number(low: float = -inf, high: float = inf, *, finite: bool = True) -> Reader:
    """Return a reader of floats; ``finite=False`` takes NaN and infinity as well."""

    def read(node: Node) -> float:
        if type(node.value) not in (int, float):
            raise node.refusal("a number")
        try:
            found = float(node.value)
        except OverflowError:
            found = inf
        if finite and not (isfinite(found) and low <= found <= high):
            raise node.refusal(f"a finite number in [{low}, {high}]")
        return found

    return read


def whole(low: int, high: int = 2**63 - 1) -> Reader:
    """Return a reader of integers."""

    def read(node: Node) -> int:
        if type(node.value) is not int or not low <= node.value <= high:
            raise node.refusal(f"an integer in [{low}, {high}]")
        return node.value

    return read


def of_type(kind: type) -> Reader:
    """Return a reader of text, or of truth values."""

    def read(node: Node) -> Any:
        if type(node.value) is not kind:
            raise node.refusal(f"a {kind.__name__}")
        return node.value

    return read


def choice(*allowed: str) -> Reader:
    """Return a reader of one of several words."""

    def read(node: Node) -> str:
        if not isinstance(node.value, str) or node.value not in allowed:
            raise node.refusal(f"one of {list(allowed)}")
        return node.value

    return read


def plain(node: Node) -> Any:
    """Read None, a truth value, a number, a text, or a sequence of such."""
    if isinstance(node.value, dict):
        return sequence(plain)(node)
    if node.value is None or type(node.value) in (bool, int, float, str):
        return node.value
    raise node.refusal("plain values")


def optional(read_value: Reader) -> Reader:
    """Return a reader of None, or of what another one reads."""
    return lambda node: None if node.value is None else read_value(node)


def either(first: Reader, second: Reader) -> Reader:
    """Return a reader of what either reads."""

    def read(node: Node) -> Any:
        with suppress(CorruptFileError):
            return first(node)
        return second(node)

    return read


def array(
    kinds: str,
    *,
    n_dims: int = 1,
    low: float = -inf,
    high: float = inf,
    finite: bool = True,
    least: int = 0,
    increasing: bool = False,
) -> Reader:
    """Return a reader of arrays of at least ``least`` values, finite unless that is switched off.

    ``kinds`` are characters of numpy's dtypes, ``"d"`` for float64.
    """

    def read(node: Node) -> Any:
        key = node.value.get("array") if isinstance(node.value, dict) else None
        if not isinstance(key, str) or key not in node.arrays:
            raise node.refusal("an array")
        values = node.arrays.pop(key)
        if values.dtype.char not in kinds or values.ndim != n_dims or len(values) < least:
            raise node.refusal(f"an array of {n_dims} dimensions, of type {kinds!r}")
        if values.dtype.kind == "f":
            inside = (values >= low) & (values <= high)
            if not (inside.all() and (not finite or np.isfinite(values).all())):
                raise node.refusal(f"values in [{low}, {high}]")
        if increasing and not (values[1:] > values[:-1]).all():
            raise node.refusal("increasing values")
        return values

    return read


def sequence(read_part: Reader) -> Reader:
    """Return a reader of tuples."""

    def read(node: Node) -> tuple[Any, ...]:
        if not isinstance(node.value, dict) or not isinstance(node.value.get("sequence"), list):
            raise node.refusal("a sequence")
        return tuple(read_part(node.at(i, part)) for i, part in enumerate(node.value["sequence"]))

    return read


def mapping(read_part: Reader) -> Reader:
    """Return a reader of dictionaries whose keys are free."""
    return lambda node: {
        name: read_part(node.at(name, part)) for name, part in node.entries("mapping").items()
    }


def named(parts: Mapping[str, Reader], later: Collection[str] = ()) -> Reader:
    """Return a reader of dictionaries whose keys are these and no others.

    The parts that came ``later`` than the first files may be missing; they have defaults.
    """

    def read(node: Node) -> dict[str, Any]:
        content = node.entries("mapping")
        if not parts.keys() - set(later) <= content.keys() <= parts.keys():
            raise node.refusal(f"the parts {sorted(parts)} and no others")
        return {name: parts[name](node.at(name, value)) for name, value in content.items()}

    return read


def record(kind: type, agrees: Callable[[Any], bool] = lambda _: True, **parts: Reader) -> Reader:
    """Return a reader of one dataclass whose parts agree with each other.

    Parts without a reader are read by their type. Those with a default came later than the first
    files, and may be missing.
    """
    types = get_type_hints(kind)
    later = [part.name for part in fields(kind) if part.default is not MISSING]
    by_type = {name: _by_type(hint) for name, hint in types.items() if name not in parts}
    read_parts = named({**by_type, **parts}, later)

    def read(node: Node) -> Any:
        if not isinstance(node.value, dict) or node.value.get("record") != kind.__name__:
            raise node.refusal(f"a {kind.__name__}")
        found = kind(**read_parts(node.at("parts", node.value.get("parts"))))
        if not agrees(found):
            raise node.refusal(f"a {kind.__name__} whose parts fit together")
        return found

    return read


def _by_type(hint: Any) -> Reader:
    if get_origin(hint) is Literal:
        return choice(*get_args(hint))
    known: dict[Any, Reader] = {int: whole(0), float: number(), bool: of_type(bool)}
    return known.get(hint, of_type(str))
