"""The loops over rows, behind one interface: compiled from C, or plain numpy.

Both engines offer the functions of :class:`Engine` and agree to rounding. The compiled one is taken
wherever it was built: the wheels have it, and ``pip install`` builds it where there is a compiler.
The environment variable ``TRUEUP_ENGINE=numpy``, read when a process imports this, leaves it out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from trueup._kernels.plain import Absorbed, PlainRows

FloatArray = NDArray[np.float64]
UInt64Array = NDArray[np.uint64]
IntArray = NDArray[np.intp]


class Engine(Protocol):
    """What an engine computes on one block of rows, which are checked but in ``absorb``.

    Attributes
    ----------
    BLOCK : int
        Rows of a block: as many as what lies between two passes over it leaves in a core's cache.
    """

    __name__: str
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
        """Return the sum of the rows' hashes modulo 2^128 as its low and its high word."""

    def groups_of(self, row_id: UInt64Array, rule: tuple[int, int, int], out: IntArray) -> None:
        """Write the group of each row, by ``HashRule.numbers``."""

    def logit_shifts(
        self,
        margin: FloatArray,
        label: FloatArray,
        weight: FloatArray | None,
        group: IntArray,
        chosen: NDArray[np.bool_],
    ) -> list[float] | None:
        """Solve for the logit shift of several selections of rows at once, by plain Newton steps.

        ``chosen`` of shape (k, n_groups) says which groups each is fitted on. None where these
        steps don't find all roots.
        """

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
        self, code: IntArray, label: FloatArray, proba: FloatArray, n_codes: int, n_columns: int
    ) -> FloatArray | None:
        """Check rows and sum numbers of each at its code, shape (n_codes, n_columns).

        They are the eight of ``add_cells``, or the first four of them. None if a row is not valid,
        or if the engine has no loop that does both at once.
        """

    def sort_rows(
        self,
        code: IntArray,
        columns: tuple[FloatArray, ...],
        count: IntArray,
        order: IntArray,
        out: tuple[FloatArray, ...],
    ) -> None:
        """Put up to three columns in the order of the codes, those of one code as they came.

        Written are the rows of each code, where each row came from, and the columns.
        """

    def bin_sums(
        self, label: FloatArray, proba: FloatArray, inner: FloatArray
    ) -> FloatArray | None:
        """Check rows and sum ``(1, label, proba)`` over bins of equal width, (n_bins, 3).

        ``inner`` are the edges between the bins, which are open below; None as in ``code_sums``.
        """


def _chosen() -> Engine:
    if os.environ.get("TRUEUP_ENGINE") != "numpy":
        with suppress(ImportError):  # not compiled, or from sources of another day
            return cast(Engine, import_module("trueup._kernels.compiled_engine"))
    return cast(Engine, import_module("trueup._kernels.numpy_engine"))


engine = _chosen()
"""The compiled engine, or numpy's where the other was not built or is not wanted."""
