"""Files that are there whole or not at all, whenever the process that writes them ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import ENOENT
from pathlib import Path
from tempfile import NamedTemporaryFile


def replace_file(path: str | Path, content: bytes | str) -> Path:
    """Write a file such that its path holds either what it held before, or all of the content.

    Its folder exists; text is written as UTF-8.
    """
    data = content.encode() if isinstance(content, str) else content
    return replace_file_by(path, lambda file: file.write_bytes(data))


def replace_file_by(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Do as :func:`replace_file` with a function that writes to the path which it is given.

    The temporary file lies in the same folder, since only there a rename is one step. It ends as
    the file does, for functions that go by the ending.
    """
    target = Path(path)
    if target.exists() and not target.is_file():  # a device, a pipe, a folder: nothing to rename
        write(target)
        return target
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(target))
    with NamedTemporaryFile(
        dir=target.parent, prefix=".", suffix=f".tmp{target.suffix}", delete=False
    ) as file:
        temporary = Path(file.name)
    try:
        write(temporary)
        temporary.chmod(_mode(target))
        _flush(temporary)
        temporary.replace(target.resolve())  # what a link points to, and not the link
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _mode(target: Path) -> int:
    """Return the permissions of the file, or those that a new one gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _flush(path: Path) -> None:
    """Have the content on the disk before the name, so that a crash leaves no empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
