"""The exceptions and the warning of trueup.

Every message reads ``<name> must be <rule>; got <value>[ at index <i>]. <how to fix it>.``
"""

from __future__ import annotations

from trueup.redact import without_credentials


class TrueupError(Exception):
    """Base class of every exception that trueup raises on purpose; no message holds a password."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_credentials(a) if isinstance(a, str) else a for a in args))


class InvalidInputError(TrueupError, ValueError):
    """An argument has the wrong shape, type or range."""


class CorruptFileError(InvalidInputError):
    """Stored bytes are damaged, cut off, forged, or not what trueup wrote."""


class UndefinedMetricError(TrueupError, ValueError):
    """The input is valid, but the metric has no value on it."""


class UnscorableInputError(InvalidInputError, UndefinedMetricError):
    """Nothing is scored: no rows, predictions that are not finite, or more levels than allowed."""


class InexactSummaryError(UndefinedMetricError):
    """The sums of a summary can't stand for its rows, which lie too far out for that."""


class NotFittedError(TrueupError, AttributeError):
    """An estimator was asked to predict before it was fitted."""


class StateMismatchError(TrueupError, ValueError):
    """Two results, summaries or studies that do not belong together were combined."""


class TrueupWarning(UserWarning):
    """Something that the user should know, while the result stands."""
