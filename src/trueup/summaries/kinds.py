"""The summaries of the losses: which belongs to a loss, and which to stored bytes."""

from __future__ import annotations

from trueup.arguments import is_one_of
from trueup.errors import CorruptFileError, InvalidInputError
from trueup.losses import BrierScore, LogLoss, Loss, PoissonDeviance, SquaredError
from trueup.splits import Split
from trueup.summaries.logit_grid import LogitGrid
from trueup.summaries.loss import LossSummary
from trueup.summaries.poisson import PoissonMoments
from trueup.summaries.residual import ResidualMoments
from trueup.summaries.storage import corrupt, split_of, unpack


class LogLossSummary(LossSummary):
    """Summary for the log loss of 0/1 labels: 24 KiB a group, 48 KiB with weights.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.summaries import LogLossSummary
    >>> summary = LogLossSummary(CrossFit(5))
    >>> summary.update([0, 1] * 50, [0.3, 0.6] * 50)
    >>> round(summary.compute().vanilla, 4)
    0.4338
    """

    loss = LogLoss()
    _state_type = LogitGrid


class BrierSummary(LossSummary):
    """Summary for the Brier score, as large as that for the log loss.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.summaries import BrierSummary
    >>> summary = BrierSummary(CrossFit(5))
    >>> summary.update([0, 1] * 50, [0.3, 0.6] * 50)
    >>> round(summary.compute().vanilla, 4)
    0.125
    """

    loss = BrierScore()
    _state_type = LogitGrid


class SquaredErrorSummary(LossSummary):
    """Summary for the squared error: 88 bytes a group.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.summaries import SquaredErrorSummary
    >>> summary = SquaredErrorSummary(CrossFit(5))
    >>> summary.update([1.0, 2.0] * 50, [1.5, 2.0] * 50)
    >>> round(summary.compute().vanilla, 4)
    0.125
    """

    loss = SquaredError()
    _state_type = ResidualMoments


class PoissonSummary(LossSummary):
    """Summary for the Poisson deviance: 280 bytes a group.

    Of counts in the millions the standard error keeps about five digits, all else ten.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.summaries import PoissonSummary
    >>> summary = PoissonSummary(CrossFit(5))
    >>> summary.update([1, 2] * 50, [1.5, 2.0] * 50)
    >>> round(summary.compute().vanilla, 4)
    0.0945
    """

    loss = PoissonDeviance()
    is_as_good_as_rows = False  # rows keep more digits of the standard error
    _state_type = PoissonMoments


_KINDS: tuple[type[LossSummary], ...] = (
    LogLossSummary,
    BrierSummary,
    SquaredErrorSummary,
    PoissonSummary,
)


def summary_type(loss: str | Loss) -> type[LossSummary] | None:
    """Return the kind of summary of a loss; None where there is none.

    Examples
    --------
    >>> from trueup.summaries import summary_type
    >>> summary_type("brier_score").__name__
    'BrierSummary'
    """
    for kind in _KINDS:
        if is_one_of(loss, [kind.loss.name]) or type(loss) is type(kind.loss):
            return kind
    return None


def summary_of(loss: str, split: Split) -> LossSummary:
    """Return an empty summary for a loss.

    Raises
    ------
    InvalidInputError
        If there is no summary for the loss.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.summaries import summary_of
    >>> type(summary_of("log_loss", CrossFit(5))).__name__
    'LogLossSummary'
    """
    kind = summary_type(loss)
    if kind is None:
        names = sorted(kind.loss.name for kind in _KINDS)
        raise InvalidInputError(
            f"loss must be one of {names} in a summary",
            repr(loss),
            "Use evaluate() on arrays for the other losses and for several classes.",
        )
    return kind(split)


def from_bytes(data: bytes) -> LossSummary:
    """Return the summary that ``to_bytes`` stored; nothing in the bytes is executed.

    Raises
    ------
    CorruptFileError
        If the bytes are no summary, or a damaged or forged one; it is an InvalidInputError.
    InvalidInputError
        If they are a summary of another version.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.summaries import LogLossSummary, from_bytes
    >>> summary = LogLossSummary(CrossFit(5))
    >>> summary.update([0, 1] * 50, [0.3, 0.6] * 50)
    >>> from_bytes(summary.to_bytes()).compute() == summary.compute()
    True
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidInputError(
            "data must be the bytes of a summary",
            f"{type(data).__name__}",
            "Pass what to_bytes() returned.",
        )
    header, arrays = unpack(bytes(data))
    kinds = {kind.__name__: kind for kind in _KINDS}
    if str(header.get("kind")) not in kinds:
        raise CorruptFileError(
            f"data must be a summary among {sorted(kinds)}",
            repr(header.get("kind")),
            "Pass what to_bytes() returned.",
        )
    split = split_of(header.get("split"))
    counts = arrays.get("row_counts")
    if counts is None or counts.shape != (split.n_groups,):  # before a state of that size is made
        raise corrupt("as many groups as its split")
    summary = kinds[str(header["kind"])](split)
    summary.restore(header, arrays)
    return summary
