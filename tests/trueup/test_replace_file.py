"""A file is whole whenever its writer is stopped."""

from __future__ import annotations

import os

import pytest

from trueup.replace_file import replace_file, replace_file_by


def test_content_mode_and_link_are_kept(tmp_path):
    target, link = tmp_path / "a.html", tmp_path / "link.html"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert replace_file(link, "nü") == link
    assert target.read_text(encoding="utf-8") == "nü"
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "like").touch()
    replace_file(tmp_path / "new", b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "like").stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("old")

    def fail(path):
        path.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        replace_file_by(target, fail)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(  # Windows knows NUL by its name only: no file could be put in its place
    not hasattr(os, "mkfifo"), reason="devices are files on POSIX systems only"
)
def test_a_device_is_written_to_and_not_replaced():
    replace_file(os.devnull, "gone")
    assert not os.path.isfile(os.devnull)


def test_a_missing_folder_is_named_with_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing/a\.csv"):
        replace_file(tmp_path / "missing" / "a.csv", "x")
