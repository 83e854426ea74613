"""A summary of a loss: update with batches, merge, compute, store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import trueup._kernels as _kernels
from trueup._kernels import Engine, UInt64Array
from trueup.arguments import whole_number
from trueup.arrays import Arrays
from trueup.errors import InvalidInputError, StateMismatchError, UndefinedMetricError
from trueup.losses import Loss
from trueup.losses.elementary import expit
from trueup.read.frames import by_position, columns_of
from trueup.read.ids import FewIds
from trueup.read.rows import Notices
from trueup.scoring.algorithm import Sample, score
from trueup.scoring.result import Evaluation
from trueup.splits import CrossFit, Split, kernel_rule
from trueup.summaries.batch import Batch, make_batch, probability_columns
from trueup.summaries.field import FieldSummary, require_same_fields
from trueup.summaries.logit_grid import LogitGrid
from trueup.summaries.points import RowTotals, State, require_exact_biases, require_magnitude
from trueup.summaries.poisson import PoissonMoments
from trueup.summaries.residual import ResidualMoments
from trueup.summaries.storage import fields_from_json, pack, require_like

_DEFAULT_SPLIT = CrossFit()
_CAREFUL_ROWS = 1 << 13  # after a row that the kernel doesn't take, before it is tried again


class LossSummary:
    """Summary of predictions for one loss; use one of its subclasses.

    Parameters
    ----------
    split : CrossFit, HoldOut or InSample, default CrossFit(5)
        Which rows fit the bias and which are scored. ``Rolling`` needs all times and is refused.

    Notes
    -----
    Without ``row_id`` a row's id is its position among the rows that this summary was updated
    with. Summaries that are going to be merged need ids of their own, for ``CrossFit`` and
    ``HoldOut``: positions would repeat. With ``InSample`` they merge all the same, and only the
    fingerprint then depends on how the rows were divided.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.summaries import LogLossSummary
    >>> one, two = LogLossSummary(CrossFit(5)), LogLossSummary(CrossFit(5))
    >>> one.update([0, 1] * 50, [0.3, 0.6] * 50, row_id=range(100))
    >>> two.update([0, 1] * 50, [0.2, 0.7] * 50, row_id=range(100, 200))
    >>> one.merge(two)
    >>> one.compute().n
    200
    """

    loss: ClassVar[Loss]
    is_as_good_as_rows: ClassVar[bool] = True
    """Whether ``evaluate`` may use it for rows that are in memory."""
    _state_type: ClassVar[type[LogitGrid] | type[ResidualMoments] | type[PoissonMoments]]

    def __init__(self, split: Split = _DEFAULT_SPLIT) -> None:
        if not isinstance(split, Split) or split.n_groups is None:
            raise InvalidInputError(
                "split must be CrossFit, HoldOut or InSample in a summary",
                repr(split),
                "Use evaluate() on arrays for the other splits.",
            )
        self.split = split
        self._n_groups = split.n_groups
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._totals = RowTotals(self._n_groups, 2 if self.loss.task == "binary" else 1)
        self._state: State = self._state_type(self._n_groups)
        self._fields: dict[str, FieldSummary] = {}

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return int(self._totals.row_counts.sum())

    def update(
        self,
        y_true: Any,
        y_pred: Any = None,
        *,
        y_logit: Any = None,
        labels: Sequence[Any] | None = None,
        row_id: Any = None,
        sample_weight: Any = None,
        fields: Mapping[str, Any] | None = None,
        threads: int = 1,
    ) -> None:
        """Add a batch of rows, of any size; a batch that is refused changes nothing.

        Parameters
        ----------
        y_true, y_pred, y_logit, labels, row_id, sample_weight, fields
            As in :func:`trueup.evaluate`; every batch has the same fields.
        threads : int, default 1
            Threads that share the batch.

        Raises
        ------
        InvalidInputError
            If an argument has the wrong shape, type or range.
        StateMismatchError
            If earlier batches had other fields, or ids where this one has none.
        """
        columns = {"y_true": y_true, "y_pred": y_pred, "y_logit": y_logit}
        columns |= {"row_id": row_id, "sample_weight": sample_weight}
        fields = columns_of(fields)
        columns = by_position(columns, labels=labels, others=fields)
        notices = self.add(columns, labels, fields, threads)
        notices.ids = None  # only whoever has all rows can tell whether their ids are few
        notices.warn()

    def add(
        self,
        columns: Mapping[str, Any],
        labels: Sequence[Any] | None,
        fields: Mapping[str, Any] | None,
        threads: int,
    ) -> Notices:
        """Do what ``update`` does, and return what is to be said instead of warning of it."""
        whole_number("threads", threads, 1, "Pass the number of free cores.")
        batch = make_batch(self.loss, labels, fields, columns)
        if batch.n == 0:
            return Notices()
        summary, notices = self._summarise(batch, threads)
        self._absorb(summary)
        return notices

    def merge(self, other: Self) -> None:
        """Add the rows of another summary.

        Raises
        ------
        StateMismatchError
            If the summaries differ in kind, split or fields, or if row positions would repeat.
        """
        if type(other) is not type(self) or other.split != self.split:
            raise StateMismatchError(
                "summaries must be of one kind and split",
                f"{self!r} and {other!r}",
                "Make all of them with the same arguments.",
            )
        if self._n_groups > 1 and self._totals.positional and other._totals.positional:
            raise StateMismatchError(
                f"row_id must be given in summaries that are merged with {self.split!r}",
                "positions in both",
                "Pass row_id to update().",
            )
        self._absorb(other)

    def compute(self) -> Evaluation:
        """Return the evaluation of all rows so far, equal to that of ``evaluate`` to 1e-11.

        Raises
        ------
        UndefinedMetricError
            If there are no rows, or the bias rows lack a class.
        InexactSummaryError
            If logits beyond +-38 meet a bias term beyond +-10, which moves them to where the loss
            is curved, or if residuals or weights are so large or so small that their powers leave
            float64; it is an UndefinedMetricError.
        """
        if self.n == 0:
            raise UndefinedMetricError(
                "summary must hold at least one row", "0", "Update it with the validation rows."
            )
        points = self._state.points()
        require_magnitude(self._state, points.weight)
        sample = Sample(
            self._state.loss_of_points or self.loss,
            **vars(points),
            row_counts=self._totals.row_counts,
            support=self._totals.support,
        )
        fields = {name: field.compute() for name, field in self._fields.items()}
        evaluation = score(sample, self.split, self._totals.fingerprint, fields)
        require_exact_biases(self._state, evaluation)
        return evaluation

    def to_bytes(self) -> bytes:
        """Return the summary as bytes, for :func:`trueup.summaries.from_bytes`."""
        header = {
            "kind": type(self).__name__,
            "split": repr(self.split),
            "totals": self._totals.to_json(),
            "fields": {name: list(field.levels) for name, field in self._fields.items()},
        }
        arrays = self._totals.to_arrays() | self._state.to_arrays()
        arrays |= {f"field_{i}": field.sums for i, field in enumerate(self._fields.values())}
        return pack(header, arrays)

    def restore(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Take the state that ``to_bytes`` stored; refuse arrays that it does not have."""
        fields = fields_from_json(header.get("fields"))
        sums = {f"field_{i}": FieldSummary("", one).sums for i, one in enumerate(fields.values())}
        state = self._state.pattern(arrays)
        require_like(arrays, self._totals.to_arrays() | state | sums)
        self._totals = RowTotals.restored(header.get("totals"), arrays)
        self._state.restore({name: arrays[name] for name in state})
        self._fields = {
            name: FieldSummary.restored(name, levels, arrays[f"field_{i}"])
            for i, (name, levels) in enumerate(fields.items())
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}(split={self.split!r})"

    def _summarise(self, batch: Batch, threads: int) -> tuple[Self, Notices]:
        """Return the summary of a batch; its blocks are dealt out to the threads."""
        kernels = _kernels.engine
        try:
            shares = batch.map_shares(
                lambda share: self._summarise_share(batch, share, kernels), kernels.BLOCK, threads
            )
        except InvalidInputError:
            batch.refuse(self.loss)  # the same rule, with the index in the whole batch
            raise
        whole, notices = shares[0]
        for part, mine in shares[1:]:
            whole._absorb(part)
            notices.add(mine)
        return whole, notices

    def _summarise_share(
        self, batch: Batch, share: Sequence[slice], kernels: Engine
    ) -> tuple[Self, Notices]:
        part, notices = type(self)(self.split), Notices()
        part._totals.positional = not batch.has_ids
        part._fields = {name: FieldSummary(name, one.names) for name, one in batch.levels.items()}
        for block in part._absorb_plain(batch, share, self.n, kernels, notices):
            rows = batch.read(self.loss, block, self.n, notices)
            self._look_at_ids(rows.row_id if batch.has_ids else None, notices)
            groups = self.split.groups(rows.row_id, None)
            part._totals.add(rows, groups, kernels)
            part._state.add(rows, groups, kernels)
            if batch.levels:
                columns = rows.y_true, expit(rows.margin), rows.weight
                batch.add_cells(block, columns, part._fields, kernels)
        return part, notices

    def _absorb_plain(
        self,
        batch: Batch,
        share: Sequence[slice],
        first_row: int,
        kernels: Engine,
        notices: Notices,
    ) -> Iterator[slice]:
        """Add what the kernel takes in one pass, and yield the rows that need another look."""
        rule = kernel_rule(self.split)
        for block in share:
            start = block.start
            while start < block.stop:
                rest = slice(start, block.stop)
                plain = batch.plain(rule, rest, first_row)
                absorbed = None if plain is None else self._state.absorb(plain, kernels)
                if plain is None or absorbed is None:
                    yield rest
                    break
                start += absorbed.n
                self._totals.absorb(absorbed)
                seen = plain.leading(absorbed.n)
                notices.look(seen.label, seen.prediction, seen.weight, is_logit=seen.is_logit)
                self._look_at_ids(seen.row_id, notices)
                if batch.levels:
                    columns = probability_columns(seen)
                    batch.add_cells(slice(rest.start, start), columns, self._fields, kernels)
                if start < block.stop:
                    yield slice(start, start := min(start + _CAREFUL_ROWS, block.stop))

    def _look_at_ids(self, row_id: UInt64Array | None, notices: Notices) -> None:
        if row_id is not None and self._n_groups > 1:
            notices.ids = notices.ids or FewIds()
            notices.ids.look(row_id)

    def _absorb(self, other: Self) -> None:
        """Add the rows of a summary of the same kind and split."""
        if other.n == 0:
            return
        if self.n == 0:
            self._fields = {name: FieldSummary(name) for name in other._fields}
        require_same_fields(self._fields, other._fields)
        self._totals.merge(other._totals)
        self._state.merge(other._state)
        for name, field in self._fields.items():
            field.merge(other._fields[name])
