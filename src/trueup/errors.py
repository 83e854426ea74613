"""The exceptions and the warning of trueup.

Every message reads ``<name> must be <rule>; got <value>[ at index <i>]. <how to fix it>.``
"""

from __future__ import annotations

from trueup.redact import without_credentials


class TrueupError(Exception):
    """Base class of every exception that trueup raises on purpose; no message holds a password.

    Parameters
    ----------
    rule : str
        ``<argument> must <what it must be>``; or the whole message, where no value is at fault.
    got : str, optional
        What came instead, and at which index.
    mend : str, optional
        What to do about it, in sentences.

    Examples
    --------
    >>> error = TrueupError("n_bins must be at least 1", "0", "15 is usual.")
    >>> error.argument, str(error)
    ('n_bins', 'n_bins must be at least 1; got 0. 15 is usual.')
    """

    def __init__(self, rule: str = "", got: str | None = None, mend: str | None = None) -> None:
        self.rule = without_credentials(rule)
        self.got = got and without_credentials(got)
        self.mend = mend and without_credentials(mend)
        super().__init__(self.rule, self.got, self.mend)  # as given, so that it can be pickled

    @property
    def argument(self) -> str | None:
        """What the rule speaks of, so that a command can name its option instead."""
        subject, must, _ = self.rule.partition(" must ")
        return subject if must else None

    def __str__(self) -> str:
        return self.rule if self.got is None else f"{self.rule}; got {self.got}. {self.mend}"


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
