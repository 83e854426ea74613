"""Named arrays as npz bytes: no pickle, and nothing is allocated before its size is checked.

The bytes may come from anywhere. What is read is refused with one exception, and takes no more
memory than a small multiple of the bytes: a file that unpacks to far more than itself is taken for
a bomb, and honest arrays that would are stored without compression.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from math import prod
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from trueup.errors import CorruptFileError

Arrays = dict[str, NDArray[Any]]

_GROWTH = 32
"""Bytes of arrays for each byte of the file."""
_ALWAYS_ALLOWED = 256 * 1024
_ENTRY = b"PK\x01\x02"  # begins each member's record in the directory of a zip file
_BYTES_PER_ENTRY = 128  # a member takes more: its two records, its name and numpy's header
_KINDS = "biufUS"
_EXTENSION = ".npy"
_LAST_CHARACTER = 0x10FFFF


def to_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays of numbers, truth values or text as the bytes of an npz file."""
    packed = _npz(arrays, ZIP_DEFLATED)
    total = sum(array.nbytes for array in arrays.values())
    return _npz(arrays, ZIP_STORED) if total > _allowed(len(packed)) // 2 else packed


def from_npz(data: bytes, rule: str) -> Arrays:
    """Return the arrays of ``to_npz``, each writeable and in native byte order, from any bytes.

    ``rule`` says what the bytes must be, with the name of their argument: the message of a
    CorruptFileError begins with it. Refused are bytes that are no npz file, are damaged, hold
    anything but plain arrays, or would unpack to more than 32 times their own size.
    """
    try:
        return _unpacked(data)
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds on damaged bytes
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CorruptFileError(
            rule,
            f"{len(data)} bytes that can't be read ({reason[:200]})",
            "Write it again, or fetch another copy.",
        ) from None


def _npz(arrays: Mapping[str, NDArray[Any]], compression: int) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w", compression) as archive:
        for name, array in arrays.items():
            with archive.open(name + _EXTENSION, "w", force_zip64=True) as member:
                npy.write_array(member, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _allowed(size: int) -> int:
    return max(_ALWAYS_ALLOWED, _GROWTH * size)


def _unpacked(data: bytes) -> Arrays:
    if data.count(_ENTRY) > 64 + len(data) // _BYTES_PER_ENTRY:
        raise ValueError("its directory is longer than its content")
    with ZipFile(BytesIO(data)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > _allowed(len(data)):
            raise ValueError(f"it would unpack to more than {_GROWTH} times its size")
        if len({member.filename for member in members}) < len(members):
            raise ValueError("a name occurs twice")
        return {
            member.filename.removesuffix(_EXTENSION): _array(archive, member) for member in members
        }


def _array(archive: ZipFile, member: ZipInfo) -> NDArray[Any]:
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError("its compression is not one of numpy's")
    with archive.open(member) as file:
        version = npy.read_magic(file)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, column_major, dtype = read_header[version](file)
        n_bytes = _size(shape, dtype)
        content = file.read(n_bytes + 1)
    if len(content) != n_bytes:
        raise ValueError(f"{member.filename} says {n_bytes} bytes and holds {len(content)}")
    values = np.frombuffer(content, dtype).reshape(shape, order="F" if column_major else "C")
    return _checked_text(values.astype(dtype.newbyteorder("="), order="K"))


def _size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the bytes of an array, by integers that can't overflow."""
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ValueError(f"it holds {dtype}, and is read with allow_pickle=False")
    if any(length < 0 for length in shape):
        raise ValueError("a length is negative")
    return prod(shape) * dtype.itemsize


def _checked_text(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "U" and values.size:
        codes = values.reshape(-1).view(np.uint32)
        if codes.max() > _LAST_CHARACTER:
            raise ValueError("a text holds what is no character")
    return values
