"""The validation passes of the latest epochs, and which of them a logged number comes from.

A pass over the validation rows begins where gradients go off, where a data loader is started or
where a model is put to evaluation; training ends it. A loop that does these for each batch makes
blocks of one batch, and those that follow one another are one section until a batch comes again.
The latest section that reproduces a number is the one that it comes from.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from trueup_mlflow.autologging.recent import Entry, Match, is_telling, number_of
from trueup_mlflow.autologging.reductions import Section, ranges
from trueup_mlflow.autologging.scored import Scored
from trueup_mlflow.autologging.torch_batches import Batch, is_among, period_of

MAX_BYTES = 2**28
_MAX_BATCHES = 20_000  # of one place in the code
_MAX_PLACES = 64
_KEPT_EPOCHS = 4
_REMEMBERED = 64
TOO_LARGE = f"its predictions take more than {MAX_BYTES // 2**20} MiB"


@dataclass(frozen=True)
class Seen:
    """A batch, and where in the course of the training it was scored."""

    batch: Batch
    serial: int
    epoch: int
    loader: int
    block: int


class Passes:
    """Recognises the numbers that validation loops make of their losses, within 256 MiB.

    Parameters
    ----------
    on_pass : callable, optional
        Called at the first batch of all, and at the first one after training.
    """

    def __init__(self, on_pass: Callable[[], None] = lambda: None) -> None:
        self._on_pass = on_pass
        self._places: OrderedDict[Hashable, deque[Seen]] = OrderedDict()
        self._matches: deque[tuple[float, Match]] = deque(maxlen=_REMEMBERED)
        self._known: dict[tuple[int, int, int], Section] = {}
        self._serial = self._epoch = self._loader = self._block = 0
        self._nbytes = 0
        self._trains = False
        self._lock = threading.Lock()
        self.dropped = False
        self.saw_training = False

    def add(self, place: Hashable, batch: Batch) -> None:
        """Append a batch that was scored at a place in the user's code."""
        if self._trains or not self._serial:
            self._on_pass()
        with self._lock:
            if self._trains:
                self._epoch += 1
                self._trains = False
            self._serial += 1
            seen = Seen(batch, self._serial, self._epoch, self._loader, self._block)
            kind = place, batch.reading, batch.reduction, batch.y_pred.shape[1:]
            self._places.setdefault(kind, deque()).append(seen)
            self._places.move_to_end(kind)
            self._nbytes += batch.nbytes
            self._forget(self._places[kind])

    def train(self) -> None:
        """Note that a loss was computed with gradients."""
        self._trains = self.saw_training = True

    def start_block(self) -> None:
        """Note that gradients go off, or that a model is put to evaluation."""
        self._block += 1

    def start_loader(self) -> None:
        """Note that a data loader starts from its beginning."""
        self._loader += 1

    @property
    def saw_batches(self) -> bool:
        """Whether any loss was seen without gradients."""
        return self._serial > 0

    def find(self, value: object) -> Match | None:
        """Return what a logged number was computed from, if that is known."""
        number = number_of(value)
        if number is None:
            return None
        with self._lock:
            for known, match in self._matches:
                if known == number:
                    return match
            found = self._find(number)
            if found is not None:
                self._matches.append((number, found))
            return found

    def numbers(self) -> list[float]:
        """Return the means of the sections, for finding out what another might have been."""
        with self._lock:
            return [mean for section in self._sections() for mean in section.candidates]

    def _find(self, number: float) -> Match | None:
        for section in self._sections():
            match = _match(section, number)
            if match is not None:
                return match
        if not is_telling(number):
            return None
        for seen in reversed(self._places.values()):
            for _, epoch in _grouped(reversed(seen), "epoch"):
                for section in ranges(_batches(epoch[::-1]), number):
                    return _match(section, number)
        return None

    def _sections(self) -> Iterator[Section]:
        """Yield the sections of all places, the latest first."""
        sections = [part for seen in self._places.values() for part in _parts(seen)]
        ends = {(part[0].serial, part[-1].serial, len(part)): part for part in sections}
        self._known = {
            key: self._known.get(key) or Section(_batches(part)) for key, part in ends.items()
        }
        for key in sorted(self._known, key=lambda key: key[1], reverse=True):
            yield self._known[key]

    def _forget(self, current: deque[Seen]) -> None:
        while len(current) > _MAX_BATCHES or current[0].epoch < self._epoch - _KEPT_EPOCHS:
            self._drop(current)
        while self._nbytes > MAX_BYTES or len(self._places) > _MAX_PLACES:
            kind, oldest = next(iter(self._places.items()))
            if oldest[0].epoch == self._epoch:
                self.dropped = True
            self._drop(oldest)
            if not oldest:
                del self._places[kind]

    def _drop(self, seen: deque[Seen]) -> None:
        self._nbytes -= seen.popleft().batch.nbytes


def _grouped(seen: Iterator[Seen], *names: str) -> Iterator[tuple[object, list[Seen]]]:
    for key, group in groupby(seen, key=lambda one: [getattr(one, name) for name in names]):
        yield key, list(group)


def _parts(seen: Sequence[Seen]) -> Iterator[list[Seen]]:
    """Yield the batches of each section."""
    for _, run in _grouped(iter(seen), "epoch", "loader"):
        singles: list[Seen] = []
        for _, block in _grouped(iter(run), "block"):
            if singles and (len(block) > 1 or is_among(block[0].batch, _batches(singles))):
                yield singles
                singles = []
            if len(block) > 1:
                yield from _without_repetition(block)
            else:
                singles += block
        if singles:
            yield singles


def _without_repetition(block: list[Seen]) -> Iterator[list[Seen]]:
    """Yield the passes of a block that is one sequence of batches over and over."""
    period = period_of(_batches(block))
    for start in range(0, len(block), period):
        yield block[start : start + period]


def _batches(seen: Sequence[Seen]) -> list[Batch]:
    return [one.batch for one in seen]


def _match(section: Section, number: float) -> Match | None:
    if not math.isfinite(number):
        return None
    if section.gives(number):
        return Match(_entry(section))
    if section.batches[0].reading.loss == "mean_squared_error" and section.gives_root(number):
        return Match(_entry(section), root=True)
    return None


def _entry(section: Section) -> Entry:
    reading = section.batches[0].reading
    if reading.refusal is not None:
        return Entry.refused(reading.refusal)
    y_pred = np.concatenate([batch.predictions() for batch in section.batches])
    n_classes = y_pred.shape[1] if y_pred.ndim == 2 else 2
    return Entry(
        Scored(
            loss=reading.loss,
            value=section.mean,
            y_true=np.concatenate([batch.labels() for batch in section.batches]),
            y_pred=y_pred,
            labels=None if reading.loss == "mean_squared_error" else tuple(range(n_classes)),
            are_logits=reading.are_logits,
        )
    )
