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
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from trueup_mlflow.autologging.recent import Entry, Match, is_telling, number_of
from trueup_mlflow.autologging.scored import Scored
from trueup_mlflow.autologging.torch_losses.batches import Batch, fetch_losses, is_among, period_of
from trueup_mlflow.autologging.torch_losses.sections import Section, ranges

MAX_BYTES = 2**28
_MAX_BATCHES = 20_000  # of one place in the code
_MAX_PLACES = 64
_KEPT_EPOCHS = 4
_REMEMBERED = 64
TOO_LARGE = f"its predictions take more than {MAX_BYTES // 2**20} MiB"


class Seen(NamedTuple):
    """A batch, and where in the course of the training it was scored."""

    batch: Batch
    serial: int
    loader: int
    block: int
    nbytes: int


class Epoch:
    """The batches that one place in the code scored between two stretches of training."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seen: deque[Seen] = deque()
        self.whole = Section([])
        self._cut: tuple[int, int] | None = None
        self._sections: list[tuple[int, Section]] = []

    def sections(self) -> list[tuple[int, Section]]:
        """Return the serial of the last batch and the section, for each; set ``whole`` to all."""
        cut = self.seen[0].serial, self.seen[-1].serial
        if cut != self._cut:
            self._cut, self.whole, self._sections = cut, Section([]), []
            with suppress(Exception):  # tensors without numbers, as under vmap
                whole = Section(_batches(self.seen))
                fetch_losses(whole.batches)
                parts = list(_parts(self.seen))
                self._sections = [(part[-1].serial, Section(_batches(part))) for part in parts]
                self.whole = whole
        return self._sections


class Passes:
    """Recognises the numbers that validation loops make of their losses, within 256 MiB.

    ``on_pass`` is called at the first batch of all, and at the first one after training.
    """

    def __init__(self, on_pass: Callable[[], None] = lambda: None) -> None:
        self._on_pass = on_pass
        self._places: OrderedDict[Hashable, deque[Epoch]] = OrderedDict()
        self._matches: deque[tuple[float, Match]] = deque(maxlen=_REMEMBERED)
        self._serial = self._epoch = self._loader = self._block = 0
        self._nbytes = 0
        self._trains = False
        self._lock = threading.Lock()
        self.dropped = False
        self.saw_training = False

    def add(self, place: tuple[object, ...], batch: Batch) -> None:
        """Append a batch that was scored at a place in the user's code."""
        if self._trains or not self._serial:
            self._on_pass()
        kind = (*place, *batch.kind)
        with self._lock:
            if self._trains:
                self._epoch += 1
                self._trains = False
            self._serial += 1
            epochs = self._places.get(kind)
            if epochs is None:
                epochs = self._places[kind] = deque()
            if not epochs or epochs[-1].number != self._epoch:
                epochs.append(Epoch(self._epoch))
            seen = Seen(batch, self._serial, self._loader, self._block, batch.nbytes)
            epochs[-1].seen.append(seen)
            self._places.move_to_end(kind)
            self._nbytes += seen.nbytes
            self._forget(epochs)

    def train(self) -> None:
        """Note that a loss was computed with gradients."""
        self._trains = self.saw_training = True

    def start_block(self) -> None:
        """Note that gradients go off, or that a model is put to evaluation."""
        self._block += 1

    def start_loader(self) -> None:
        """Note that a data loader starts from its beginning."""
        self._loader += 1

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
        for epochs in reversed(self._places.values()):
            for epoch in self._open_epochs(epochs):
                for section in ranges(epoch.whole, number):
                    return _match(section, number)
        return None

    def _open_epochs(self, epochs: deque[Epoch]) -> list[Epoch]:
        """Return the epochs that a range of batches is looked for in, the latest first.

        A training that logs each of its steps asks for a number at each step: it is not looked for
        in all epochs then.
        """
        return [epochs[-1]] if self._trains else list(reversed(epochs))

    def _sections(self) -> list[Section]:
        """Return the sections of all places, the latest first."""
        epochs = [epoch for epochs in self._places.values() for epoch in epochs]
        found = [one for epoch in epochs for one in epoch.sections()]
        return [section for _, section in sorted(found, key=itemgetter(0), reverse=True)]

    def _forget(self, current: deque[Epoch]) -> None:
        while len(current) > 1 and current[0].number < self._epoch - _KEPT_EPOCHS:
            self._drop(current)
        while sum(len(epoch.seen) for epoch in current) > _MAX_BATCHES:
            self._drop(current)
        while self._nbytes > MAX_BYTES or len(self._places) > _MAX_PLACES:
            kind, oldest = next(iter(self._places.items()))
            if oldest[0].number == self._epoch:
                self.dropped = True
            self._drop(oldest)
            if not oldest:
                del self._places[kind]

    def _drop(self, epochs: deque[Epoch]) -> None:
        self._nbytes -= epochs[0].seen.popleft().nbytes
        if not epochs[0].seen:
            epochs.popleft()


def _parts(seen: Iterable[Seen]) -> Iterator[list[Seen]]:
    """Yield the batches of each section."""
    for _, run in groupby(seen, key=attrgetter("loader")):
        singles: list[Seen] = []
        known: dict[tuple[float, ...], list[Batch]] = {}
        for block in (list(group) for _, group in groupby(run, key=attrgetter("block"))):
            batch = block[0].batch
            if singles and (len(block) > 1 or is_among(batch, known.get(batch.means, ()))):
                yield singles
                singles, known = [], {}
            if len(block) > 1:
                yield from _without_repetition(block)
            else:
                singles += block
                known.setdefault(batch.means, []).append(batch)
        if singles:
            yield singles


def _without_repetition(block: list[Seen]) -> Iterator[list[Seen]]:
    """Yield the passes of a block that is one sequence of batches over and over."""
    period = period_of(_batches(block))
    for start in range(0, len(block), period):
        yield block[start : start + period]


def _batches(seen: Iterable[Seen]) -> list[Batch]:
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
    y_pred = section.predictions()
    n_classes = y_pred.shape[1] if y_pred.ndim == 2 else 2
    return Entry(
        Scored(
            loss=reading.loss,
            value=section.mean,
            y_true=section.labels(),
            y_pred=y_pred,
            labels=None if reading.loss == "mean_squared_error" else tuple(range(n_classes)),
            are_logits=reading.are_logits,
        )
    )
