"""The numbers that metric functions returned lately, and what each of them was computed from."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass

from trueup import Evaluation, Split
from trueup_mlflow.autologging.scored import Scored
from trueup_mlflow.write.failures import describe
from trueup_mlflow.write.items import LogItems, evaluation_items, skipped_items

_MAX_NUMBERS = 4096  # a booster may log some hundreds at once
_MAX_BYTES = 2**28
_TELLING_DIGITS = 4


class Entry:
    """One scored call: evaluated when its number is first logged, and once only."""

    def __init__(self, scored: Scored | None) -> None:
        self._scored = scored
        self._outcome: Evaluation | str | None = None
        self._lock = threading.Lock()

    @classmethod
    def refused(cls, reason: str) -> Entry:
        """Return the entry of a call that has no evaluation, with the reason."""
        entry = cls(None)
        entry._outcome = f"{reason}. Use trueup_mlflow.log_evaluation."
        return entry

    @property
    def nbytes(self) -> int:
        scored = self._scored
        return 0 if scored is None else scored.nbytes

    def outcome(self, split: Split) -> Evaluation | str:
        """Return the evaluation, or the reason why there is none; then let the arrays go."""
        with self._lock:
            if self._outcome is None:
                self._outcome = self._evaluate(split)
                self._scored = None
            return self._outcome

    def _evaluate(self, split: Split) -> Evaluation | str:
        assert self._scored is not None
        try:
            return self._scored.evaluate(split)
        except Exception as failure:  # the reason becomes a tag of the user's run
            return describe(failure)


@dataclass(frozen=True)
class Match:
    """A logged number that was recognised, or whose square was."""

    entry: Entry
    root: bool = False

    def items(self, key: str, split: Split) -> LogItems:
        """Return what belongs beside the number that is logged as ``key``."""
        outcome = self.entry.outcome(split)
        if isinstance(outcome, str):
            return skipped_items(key, outcome)
        return evaluation_items(outcome, key=key, vanilla=False, root=self.root)


class RecentScores:
    """Recognises a logged number by its value, among those that were returned lately.

    It is shared by all threads, because MLflow flushes metrics from threads of its own. Old numbers
    are forgotten beyond 4096 of them, or where their arrays take more than 256 MiB; the latest
    number is always kept.
    """

    def __init__(self) -> None:
        self._matches: OrderedDict[float, Match] = OrderedDict()
        self._held = 0  # bytes at the most: an evaluated call lets its arrays go
        self._lock = threading.Lock()

    def record(self, scored: Scored) -> None:
        entry = Entry(scored)
        with self._lock:
            self._keep(scored.value, Match(entry))
            if scored.root is not None:
                self._keep(scored.root, Match(entry, root=True))
            self._held += entry.nbytes
            self._forget_old()

    def find(self, value: object) -> Match | None:
        number = number_of(value)
        if number is None:
            return None
        with self._lock:
            return self._matches.get(number)

    def numbers(self) -> list[float]:
        """Return the numbers that are kept, for finding out what another might have been."""
        with self._lock:
            return list(self._matches)

    def _keep(self, number: float, match: Match) -> None:
        if is_telling(number):
            self._matches[number] = match
            self._matches.move_to_end(number)

    def _forget_old(self) -> None:
        while len(self._matches) > _MAX_NUMBERS:
            self._matches.popitem(last=False)
        if self._held <= _MAX_BYTES:
            return
        entries = {id(match.entry): match.entry for match in self._matches.values()}
        self._held = sum(entry.nbytes for entry in entries.values())
        while self._held > _MAX_BYTES and len(entries) > 1:
            number, match = next(iter(self._matches.items()))
            del self._matches[number]
            if entries.pop(id(match.entry), None) is not None:
                self._held -= match.entry.nbytes


def number_of(value: object) -> float | None:
    """Return what was logged as a number; None where it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return None


def is_telling(number: float) -> bool:
    """Return whether a number is unlikely to be logged by chance: 0.25 is not telling."""
    return math.isfinite(number) and float(f"{number:.{_TELLING_DIGITS}g}") != number
