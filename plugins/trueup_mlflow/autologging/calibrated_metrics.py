"""Which metrics and tags go beside the metrics of one request, without MLflow."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueup import CrossFit, Split
from trueup_mlflow.autologging.coverage import UNKNOWN, Coverage, Note
from trueup_mlflow.autologging.recent import Match, number_of
from trueup_mlflow.write.failures import describe, warn
from trueup_mlflow.write.items import MAX_KEY_LENGTH, LogItems, calibrated_key, is_own_key

Find = Callable[[object], Match | None]
Explain = Callable[[object], str]
_DEFAULT_SPLIT = CrossFit()
_MAX_POINTS = 4096


class LoggedMetric(Protocol):
    """The parts of ``mlflow.entities.Metric`` that count here."""

    key: str
    value: float
    step: int
    model_id: str | None


@dataclass(frozen=True)
class TwinOptions:
    """How autologging evaluates; metrics whose keys start like ``exclude`` gain nothing."""

    split: Split = _DEFAULT_SPLIT
    exclude: tuple[str, ...] = ("training_", "system/")


@dataclass(frozen=True)
class Additions:
    """What a request gains: tags, and recognised metrics with their twins; and notes on all of it.

    ``repeated`` are metrics of ours in the request that the run has already, at that step and for
    that model.
    """

    metrics: list[tuple[Any, Mapping[str, float]]] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    repeated: list[Any] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)  # of keys without twin

    def __bool__(self) -> bool:
        return bool(self.metrics or self.tags or self.repeated)


class Points:
    """Which values of ours were logged where, so that none is logged twice.

    MLflow logs the metrics of ``mlflow.models.evaluate`` a second time for the model, and our
    evaluator may compute what autologging has logged already.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[object, ...], object] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, place: tuple[object, ...], value: object) -> None:
        """Remember that a value was logged at a place; old places are forgotten."""
        with self._lock:
            self._seen[place] = value
            self._seen.move_to_end(place)
            while len(self._seen) > _MAX_POINTS:
                self._seen.popitem(last=False)

    def has(self, place: tuple[object, ...], value: object) -> bool:
        """Return whether that value is the last one that was logged at the place."""
        with self._lock:
            return place in self._seen and self._seen[place] == value


class TwinMaker:
    """Finds the twins of the metrics of a request, and says why others have none."""

    def __init__(
        self, find: Find, options: TwinOptions, explain: Explain = lambda _: UNKNOWN
    ) -> None:
        self.coverage = Coverage()
        self._find = find
        self._options = options
        self._explain = explain
        self._points = Points()

    def additions(
        self, run_id: str, metrics: Sequence[LoggedMetric], *, is_ours: bool = False
    ) -> Additions:
        """Return what a request gains; nothing is marked as logged, or noted, yet.

        What trueup logs itself (``is_ours``) needs no twin.
        """
        found = Additions()
        present = {metric.key for metric in metrics}
        for metric in metrics:
            try:
                self._extend(found, run_id, metric, present)
            except Exception as failure:  # the others still gain theirs
                found.notes.append(_note(metric, describe(failure)))
        if is_ours:
            found.notes[:] = [note for note in found.notes if note.reason is None]
        return found

    def _extend(
        self, found: Additions, run_id: str, metric: LoggedMetric, present: set[str]
    ) -> None:
        if is_own_key(metric.key):
            if self._points.has(_place(run_id, metric, metric.key), metric.value):
                found.repeated.append(metric)
            return
        match = self._match(metric.key, metric.value)
        if match is not None:
            self._add(found, run_id, metric, self._items(match, metric.key), present)
        elif calibrated_key(metric.key) in present:  # log_evaluation's own
            found.notes.append(_note(metric))
        else:
            self._miss(found, run_id, metric)

    def mark(self, run_id: str, metrics: Iterable[LoggedMetric], tags: Mapping[str, str]) -> None:
        """Mark metrics and tags of ours as logged."""
        for metric in metrics:
            if is_own_key(metric.key):
                self._points.add(_place(run_id, metric, metric.key), metric.value)
        for tag, text in tags.items():
            self._points.add((run_id, tag), text)

    def _match(self, key: str, value: object) -> Match | None:
        if is_own_key(key) or key.startswith(self._options.exclude):
            return None
        return self._find(value)

    def _miss(self, found: Additions, run_id: str, metric: LoggedMetric) -> None:
        key = metric.key
        if key.startswith("system/"):
            return
        reason = self.coverage.reason(run_id, key) or found.reasons.get(key)
        if reason is None and key.startswith(self._options.exclude):
            reason = f"keys that begin with {' or '.join(self._options.exclude)} are left out"
        found.reasons[key] = reason or self._explain(metric.value)  # once a key
        found.notes.append(_note(metric, found.reasons[key]))

    def _items(self, match: Match, key: str) -> LogItems:
        items = match.items(key, self._options.split)
        longest = max(map(len, (*items.metrics, *items.all_tags)), default=0)
        if longest > MAX_KEY_LENGTH:
            return LogItems(
                key,
                {},
                {},
                {key: f"the keys beside it would be longer than {MAX_KEY_LENGTH} characters"},
            )
        return items

    def _add(
        self,
        found: Additions,
        run_id: str,
        metric: LoggedMetric,
        items: LogItems,
        present: set[str],
    ) -> None:
        twins = {
            key: value
            for key, value in items.metrics.items()
            if key not in present and not self._points.has(_place(run_id, metric, key), value)
        }
        reason = None if items.metrics else "; ".join(items.skipped.values())
        found.notes.append(_note(metric, reason))
        if twins:
            found.metrics.append((metric, twins))
        if twins or items.skipped:
            found.tags.update(self._new_tags(run_id, items))

    def _new_tags(self, run_id: str, items: LogItems) -> dict[str, str]:
        tags = {
            tag: text
            for tag, text in items.all_tags.items()
            if len(tag) <= MAX_KEY_LENGTH and not self._points.has((run_id, tag), text)
        }
        for key, reason in items.skipped.items():
            if not self._points.has(("warned", key), reason):
                self._points.add(("warned", key), reason)
                warn(f"calibrated values of {key} were not logged: {reason}")
        return tags


def _note(metric: LoggedMetric, reason: str | None = None) -> Note:
    return Note(metric.key, metric.step, number_of(metric.value), reason)


def _place(run_id: str, metric: LoggedMetric, key: str) -> tuple[object, ...]:
    return run_id, metric.model_id, metric.step, key
