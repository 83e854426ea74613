"""The npz codec gives back what it took, and refuses the rest before it allocates."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from trueup.arrays import from_npz, to_npz
from trueup.errors import CorruptFileError, InvalidInputError


def saved(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def with_header(header: str, content: bytes = b"") -> bytes:
    """Return an npz with one member whose numpy header says anything."""
    text = header.encode() + b"\n"
    start = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.npy", start + text + content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.array(["a", "bcd", "\ud800"]),
        np.array("alone"),
        np.array([], dtype=np.float32),
        np.array([True, False]),
        np.array([1, 2], dtype=">i4"),
        np.zeros(500_000),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_come_back(array):
    found = from_npz(to_npz({"folder/a": array, "b": np.arange(3)}), "path must be npz")
    assert list(found) == ["folder/a", "b"]
    np.testing.assert_array_equal(found["folder/a"], array)
    assert found["folder/a"].flags.writeable
    assert found["folder/a"].dtype.isnative


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a zip file"),
        (b"not a zip file", "not a zip file"),
        (saved(a=np.array([{}], dtype=object)), "allow_pickle=False"),
        (saved(a=np.zeros(2, dtype=[("x", "f8")])), "allow_pickle=False"),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2952790016,)}"), "23622"),
        (with_header("{'descr': '<U0', 'fortran_order': False, 'shape': (2952790016,)}"), "<U0"),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), "negative"),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2**60,)}"), "malformed"),
        (with_header("(" * 500), "(EOF|parse|nested)"),
        (with_header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", b"\xff" * 4), "is"),
    ],
)
def test_what_is_no_plain_array_is_refused(data, reason):
    with pytest.raises(CorruptFileError, match=f"path must be npz; got .*{reason}"):
        from_npz(data, "path must be npz")


def test_what_unpacks_to_many_times_its_size_is_refused():
    with pytest.raises(CorruptFileError, match="32 times its size"):
        from_npz(saved(a=np.zeros(30_000_000)), "path must be npz")


def test_a_damaged_file_is_invalid_input_at_every_place():
    data = to_npz({"a": np.random.default_rng(0).normal(size=50)})
    for end in range(len(data)):
        with pytest.raises(InvalidInputError):
            from_npz(data[:end], "path must be npz")
