"""How many files a row passes on its way through ``evaluate``: few enough for one sitting."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.engines import require_engine

import trueup

CORE = Path(trueup.__file__).parent


def entered(call) -> set[str]:
    """Return the files of trueup in which a function is called, once all is loaded."""
    call()
    files = set()

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and CORE in file.parents:
            files.add(file.relative_to(CORE).as_posix())

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.05, 0.95, 1_000)
    return (rng.random(1_000) < proba).astype(float), proba


def test_evaluate_enters_ten_files_at_most(rows):
    require_engine("compiled")  # whose twin is one file more
    files = entered(lambda: trueup.evaluate(*rows))
    assert len(files) <= 10, sorted(files)


def test_a_field_adds_eleven_files_at_most(rows):
    sites = np.arange(len(rows[0])) % 5
    files = entered(lambda: trueup.evaluate(*rows, fields={"site": sites}))
    assert len(files) <= 21, sorted(files)
