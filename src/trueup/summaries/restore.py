"""Which summary belongs to a loss, and which to stored bytes."""

from __future__ import annotations

from trueup.arguments import is_one_of
from trueup.errors import CorruptFileError, InvalidInputError
from trueup.losses import Loss
from trueup.splits import Split
from trueup.summaries.loss import (
    BrierSummary,
    LogLossSummary,
    LossSummary,
    PoissonSummary,
    SquaredErrorSummary,
)
from trueup.summaries.storage import corrupt, split_from_json, unpack

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
            f"data must be a summary among {sorted(kinds)}; got {header.get('kind')!r}. "
            "Pass what to_bytes() returned."
        )
    split = split_from_json(header.get("split"))
    counts = arrays.get("row_counts")
    if counts is None or counts.shape != (split.n_groups,):  # before a state of that size is made
        raise corrupt("as many groups as its split")
    summary = kinds[str(header["kind"])](split)
    summary.restore(header, arrays)
    return summary
