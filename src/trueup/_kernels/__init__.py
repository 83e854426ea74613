"""The loops over rows, behind one interface: compiled by numba, or plain numpy and scipy.

Both engines offer the functions of :class:`Engine` and agree to rounding. numba is taken for many
rows where it is installed and its loops were compiled before; where they were not, once a process
has seen so many rows that the seconds of compilation pay. The environment variable
``TRUEUP_ENGINE=numpy`` leaves it out, ``TRUEUP_ENGINE=numba`` compiles at once.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from trueup._kernels.plain import Absorbed, PlainRows

FloatArray = NDArray[np.float64]
UInt64Array = NDArray[np.uint64]
IntArray = NDArray[np.intp]

_WORTH_COMPILING = 1_000_000
_ROWS_THAT_PAY = 150_000_000  # compilation takes five seconds, and saves 30 ns a row


class Engine(Protocol):
    """What an engine computes on one block of rows, which are checked but in ``absorb``.

    Attributes
    ----------
    BLOCK : int
        Rows of a block: as many as what lies between two passes over it leaves in a core's cache.
    """

    BLOCK: int

    def absorb(
        self, rows: PlainRows, moments: FloatArray, squared_moments: FloatArray | None
    ) -> Absorbed | None:
        """Check and add the leading rows, up to one that is not plain; None for none of them.

        A plain row has a probability in [EPS, 1 - EPS] or a logit on the grid. The tables are
        those of ``deposit``; squared weights go to the second one where there are weights.
        """

    def deposit(
        self,
        logit: FloatArray,
        group: IntArray,
        label: FloatArray,
        weight: FloatArray | None,
        table: FloatArray,
    ) -> None:
        """Add ``w u^k``, k = 0 to ORDER - 1, of each row to its bin of ``table``.

        ``u`` in [-1, 1] is the place inside the bin. The table has N_BINS rows for each group and
        label, in this order.
        """

    def hash_sums(
        self, row_id: UInt64Array, label: FloatArray, weight: FloatArray | None
    ) -> tuple[int, int]:
        """Return the sums of the low words and of the high words of the rows' hashes."""

    def add_cells(
        self,
        code: IntArray,
        label: FloatArray,
        proba: FloatArray,
        weight: FloatArray | None,
        sums: FloatArray,
    ) -> None:
        """Add eight numbers of each row at its code in ``sums``.

        With y, p and w for label, probability and weight they are w, w y, w p, w p^2, w^2, 1,
        w^2 p (1 - p) and w^2 (y - p)^2.
        """

    def code_sums(
        self, code: IntArray, label: FloatArray, proba: FloatArray, n_codes: int
    ) -> FloatArray | None:
        """Check rows and sum ``(1, label, proba, proba^2)`` at each code, shape (n_codes, 4).

        None if a row is not valid, or if the engine has no loop that does both at once.
        """

    def code_table(
        self, code: IntArray, label: FloatArray, proba: FloatArray, n_codes: int
    ) -> FloatArray | None:
        """Do the same with the eight numbers of ``add_cells``, shape (n_codes, 8)."""

    def bin_sums(
        self, label: FloatArray, proba: FloatArray, inner: FloatArray
    ) -> FloatArray | None:
        """Check rows and sum ``(1, label, proba)`` over bins of equal width, (n_bins, 3).

        ``inner`` are the edges between the bins, which are open below; None as in ``code_sums``.
        """


def engine(n_rows: int, n_new: int | None = None) -> Engine:
    """Return the engine for so many rows.

    Below a million rows the start of numba costs more than it saves.

    Parameters
    ----------
    n_rows : int
        Rows of the whole task.
    n_new : int, optional
        Those of this step of it; all by default.
    """
    choice = os.environ.get("TRUEUP_ENGINE")
    if n_rows < _WORTH_COMPILING or choice == "numpy":
        return _engine("numpy_engine")
    if choice == "numba" or _is_compiled() or _pays(n_rows if n_new is None else n_new):
        return _compiled_engine()
    return _engine("numpy_engine")


@dataclass
class _Count:
    rows: int = 0


_gone_without = _Count()


def _pays(n_new: int) -> bool:
    """Count rows, and tell whether so many have gone without compiled loops that these pay."""
    _gone_without.rows += n_new
    return _gone_without.rows >= _ROWS_THAT_PAY


def _is_compiled() -> bool:
    """Tell whether the loops are loaded, or lie in numba's cache; numba itself loads slowly."""
    return f"{__name__}.numba_loops" in sys.modules or _are_cached(
        os.environ.get("NUMBA_CACHE_DIR")
    )


@cache
def _are_cached(folder: str | None) -> bool:
    compiled = f"numba_loops.*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    if folder:
        return any(Path(folder).glob(f"*/{compiled}"))
    return any(Path(__file__).parent.glob(f"__pycache__/{compiled}"))


@cache
def _compiled_engine() -> Engine:
    """Return numba's engine, or the other one where numba is missing or has no place to cache."""
    try:
        return _engine("numba_engine")
    except (ImportError, RuntimeError):
        return _engine("numpy_engine")


def _engine(name: str) -> Engine:
    return cast(Engine, import_module(f"trueup._kernels.{name}"))
