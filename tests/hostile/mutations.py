"""Seeded damage and forgery of stored bytes.

Damage changes bytes anywhere, as a disk or a cut transfer does. Forgery takes an npz or a JSON
document apart, changes one thing, and puts it together again with valid checksums, so that it
reaches the code behind the first check.
"""

from __future__ import annotations

import json
import math
import pickle
import struct
from collections.abc import Callable
from copy import deepcopy
from io import BytesIO
from random import Random
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

Members = dict[str, bytes]

_ODD_JSON: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**40, 2**63, 10**400, -(10**30), 0.5, -1e308, 1e-320),
    *(float("nan"), float("inf"), "", "x", "import_module", "__class__", "\x1b[2J", "\ud800"),
    *("9" * 300, [], [[]], {}, {"array": "a0"}, {"array": "a99"}, {"mapping": {}}),
    *({"sequence": []}, {"sequence": [1, None]}),
    {"record": "LinePlot", "parts": {"mapping": {}}},
    {"class": "CalibratedModel", "params": {"mapping": {}}, "state": {"mapping": {}}},
)
_DTYPES = (
    *("<f8", ">f8", "<f4", "<i8", "|u1", "|b1", "<U1", "<U0", "|O", "<c16", "|V8", "<M8[ns]"),
    "|S3",
)
_SHAPES = (
    *("()", "(0,)", "(1,)", "(-1,)", "(2952790016,)", "(1099511627776,)", "(0, 1099511627776)"),
    *("(3, 3)", "(1, 1, 1)", "(9223372036854775807, 9223372036854775807)"),
    *("(True,)", "('a',)", "(1.5,)"),
)
_VALUES = tuple(struct.pack("<d", v) for v in (0.0, -1.0, 7.5, math.nan, math.inf, 1e308, 5e-324))
_TEXTS = ("header.npy", "settings.npy", "columns.npy", "state.npy", "trees.npy")


def damaged(data: bytes, rng: Random) -> bytes:
    """Return the bytes with one to four places flipped, cut, repeated, moved or overwritten."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not found:
            break
        at, length = rng.randrange(len(found)), rng.choice((1, 2, 4, 8, 16, 64, 512))
        match rng.randrange(7):
            case 0:
                found[at] ^= 1 << rng.randrange(8)
            case 1:
                del found[at:]
            case 2:
                del found[at : at + length]
            case 3:
                found[at:at] = found[at : at + length]
            case 4:
                found[at : at + length] = rng.randbytes(length)
            case 5:
                found[at : at + length] = bytes(length)
            case 6:
                found[:0] = rng.randbytes(length)
    return bytes(found)


def forged_npz(data: bytes, rng: Random) -> bytes:
    """Return an npz file of which one member was changed, added, renamed or dropped."""
    members = _members(data)
    name = rng.choice(list(members))
    change = rng.choice(
        (_other_header, _other_header, _other_values, _other_values, _other_json, _other_json,
         _dropped, _renamed, _added, _bomb, _pickled, _cut)
    )  # fmt: skip
    change(members, name, rng)
    return _archive(members, rng)


def forged_json(data: bytes, rng: Random) -> bytes:
    """Return a JSON document of which one node was replaced, added, renamed or dropped."""
    try:
        document = json.loads(data)
    except ValueError:
        return data
    for _ in range(rng.randint(1, 2)):
        parent, key = rng.choice(list(_places(document)) or [([document], 0)])
        match rng.randrange(6):
            case 0 | 1 | 2:
                parent[key] = deepcopy(rng.choice(_ODD_JSON))  # shared, it could hold itself
            case 3:
                del parent[key]
            case 4 if isinstance(parent, dict):
                parent[rng.choice(("x", "predict_proba", "__init__", "array"))] = parent.pop(key)
            case _:
                parent[key] = _nested(rng.choice((1, 30, 3000)), parent[key])
    try:
        return json.dumps(document).encode()
    except (RecursionError, ValueError):
        return b"[" * 5000


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Return every place of a document as its container and key."""
    found, waiting = [], [node]
    while waiting:
        parent = waiting.pop()
        items = parent.items() if isinstance(parent, dict) else enumerate(parent)
        for key, child in list(items):
            found.append((parent, key))
            if isinstance(child, (dict, list)):
                waiting.append(child)
    return found


def _nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = {"sequence": [value]}
    return value


def _members(data: bytes) -> Members:
    with ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _archive(members: Members, rng: Random) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w", rng.choice((ZIP_STORED, ZIP_DEFLATED))) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _header(dtype: str, shape: str, order: str) -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _parted(content: bytes) -> tuple[bytes, bytes]:
    end = content.index(b"\n") + 1
    return content[:end], content[end:]


def _other_header(members: Members, name: str, rng: Random) -> None:
    header, values = _parted(members[name])
    start = header[10:].decode("latin1")
    dtype = start.split("'descr': '")[-1].split("'")[0]
    shape = start.split("'shape': ")[-1].split(", }")[0]
    new = (
        rng.choice((dtype, *_DTYPES)),
        rng.choice((shape, *_SHAPES)),
        rng.choice(("True", "False")),
    )
    members[name] = _header(*new) + values


def _other_values(members: Members, name: str, rng: Random) -> None:
    header, values = _parted(members[name])
    if len(values) >= 8:
        at = 8 * rng.randrange(len(values) // 8)
        values = values[:at] + rng.choice((*_VALUES, rng.randbytes(8))) + values[at + 8 :]
    members[name] = header + values


def _other_json(members: Members, name: str, rng: Random) -> None:
    texts = [key for key in members if key.endswith(_TEXTS)]
    if not texts:
        return _other_values(members, name, rng)
    name = rng.choice(texts)
    change = damaged if name.endswith("trees.npy") else forged_json
    text = change(_parted(members[name])[1], rng)
    members[name] = _header("|u1", f"({len(text)},)", "False") + text
    return None


def _dropped(members: Members, name: str, rng: Random) -> None:
    del members[name]


def _renamed(members: Members, name: str, rng: Random) -> None:
    members[rng.choice(("x.npy", "a0.npy", "../a.npy", f"{name}.npy"))] = members.pop(name)


def _added(members: Members, name: str, rng: Random) -> None:
    members[rng.choice(("extra.npy", "field_9.npy", "network/layer9.npy"))] = members[name]


def _bomb(members: Members, name: str, rng: Random) -> None:
    n = rng.choice((100_000, 1_000_000, 8_000_000))
    dtype = _parted(members[name])[0].split(b"'descr': '")[-1].split(b"'")[0].decode("latin1")
    size = {"<f4": 4, "|u1": 1, "|b1": 1}.get(dtype, 8)
    content = _header(dtype if size < 8 else "<f8", f"({n // size},)", "False") + bytes(
        n // size * size
    )
    members[rng.choice((name, "bomb.npy"))] = content


def _pickled(members: Members, name: str, rng: Random) -> None:
    payload: Callable[..., Any] = rng.choice((print, exec))
    members[name] = _header("|O", "(1,)", "False") + pickle.dumps(payload)


def _cut(members: Members, name: str, rng: Random) -> None:
    members[name] = members[name][: rng.randrange(len(members[name]) + 1)]
