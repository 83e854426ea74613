"""The ways in which a loop makes one number of the losses of its batches.

In float64, to 1e-12: the mean over rows (batches weighted by their size, or sums divided by the
rows) and the mean over batches. In the precision of the losses, bit for bit: the same two, added up
one by one, or as the mean of one array of the batches, of the batches repeated for each row, or of
all rows. Nothing else is recognised; a number that is none of these gains no twin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup_mlflow.autologging.scored import snapshot
from trueup_mlflow.autologging.torch_losses.batches import Batch

_TOLERANCE = 1e-12
_SLACK = 1e-3  # how far rounding to the precision of the losses may lead, at the very most


class Walk:
    """Sums over the first batches, for the ranges with a mean: a training asks at each step."""

    def __init__(self, means: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        values = means * weights
        self._range = float(means.min()), float(means.max())
        self._values = np.concatenate([[0.0], np.cumsum(values)])
        self._weights = np.concatenate([[0.0], np.cumsum(weights)])
        self._tolerance = _TOLERANCE * max(1e-300, float(np.abs(values).sum()))

    def ends(self, number: float) -> Iterator[tuple[int, int]]:
        """Yield (start, end) where sum(values) = number * sum(weights): equal offsets there."""
        low, high = self._range
        if not low <= number <= high:
            return
        offsets = self._values - number * self._weights
        order = offsets.argsort(kind="stable")
        apart = np.diff(offsets[order]) > self._tolerance
        if apart.all():
            return
        bounds = np.concatenate([[0], np.flatnonzero(apart) + 1, [len(order)]])
        for index in np.flatnonzero(np.diff(bounds) > 1):
            group = np.sort(order[bounds[index] : bounds[index + 1]])
            yield int(group[0]), int(group[-1])
            yield int(group[-2]), int(group[-1])


class Section:
    """Batches of one kind, at least one, that a loop may have made one number of."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches

    @cached_property
    def mean(self) -> float:
        return self.candidates[0]

    @cached_property
    def candidates(self) -> tuple[float, ...]:
        """The reductions in float64."""
        by_row = self._means @ self.rows / self.rows.sum()
        return tuple(map(float, (*by_row, *self._means.mean(axis=1))))

    def labels(self) -> NDArray[Any]:
        return snapshot(_flat([batch.y_true for batch in self.batches]))

    def predictions(self) -> NDArray[Any]:
        """Return predictions or logits; two classes become the logit of the second."""
        first = self.batches[0]
        if first.y_pred.ndim < 2 or first.y_true.numel() == first.y_pred.numel():
            return snapshot(_flat([batch.y_pred for batch in self.batches]))
        import torch

        logits = snapshot(torch.cat([batch.y_pred for batch in self.batches]))
        if logits.ndim == 2 and logits.shape[1] == 2:
            return np.asarray(logits[:, 1].astype(np.float64) - logits[:, 0])
        return logits

    def gives(self, number: float) -> bool:
        """Return whether the number is one of the reductions of these batches."""
        return self._spans(number) and (self._in_float64(number) or number in self._bit_for_bit)

    def gives_root(self, number: float) -> bool:
        """Return whether the number is the root of one of the reductions."""
        square = number * number
        return self._spans(square) and (self._in_float64(square) or number in self._roots)

    def _spans(self, number: float) -> bool:
        """Return whether the number lies among the losses: no mean of them is outside."""
        low, high = self._range
        return low <= number <= high

    @cached_property
    def _range(self) -> tuple[float, float]:
        slack = _SLACK * np.abs(self._means).max()
        return float(self._means.min() - slack), float(self._means.max() + slack)

    def _in_float64(self, number: float) -> bool:
        return any(math.isclose(number, mean, rel_tol=_TOLERANCE) for mean in self.candidates)

    @cached_property
    def _means(self) -> NDArray[np.float64]:
        """The means of the batches, in each of the ways to take them."""
        return np.array([batch.means for batch in self.batches]).T

    @cached_property
    def walks(self) -> list[Walk]:
        """The ways to add up the batches: each of their means, by rows and all alike."""
        weightings = [np.ones(len(self.batches))]
        if (self.rows != self.rows[0]).any():
            weightings.append(self.rows)
        return [Walk(means, weights) for means in self._means for weights in weightings]

    @cached_property
    def rows(self) -> NDArray[np.float64]:
        return np.array([batch.rows for batch in self.batches], dtype=np.float64)

    @cached_property
    def _bit_for_bit(self) -> frozenset[float]:
        with np.errstate(all="ignore"):  # losses may be infinite
            return frozenset(map(float, self._reductions()))

    @cached_property
    def _roots(self) -> frozenset[float]:
        values = [value for value in self._bit_for_bit if value >= 0.0]
        low = np.sqrt(np.array(values, dtype=self.batches[0].losses.dtype))
        return frozenset([*map(float, low), *map(math.sqrt, values)])

    def _reductions(self) -> Iterator[np.floating | float]:
        """Yield the reductions in the precision of the losses, divided in it or in float64."""
        dtype, n_rows = self.batches[0].losses.dtype, float(self.rows.sum())
        for means in self._means.astype(dtype):
            yield from _over(np.add.accumulate(means * self.rows.astype(dtype))[-1], n_rows)
            yield from _over(np.add.accumulate(means)[-1], len(means))
            yield from _means_of(means)
            yield np.repeat(means, self.rows.astype(np.int64)).mean()
        totals = [batch.total for batch in self.batches]
        if self.batches[0].reduction != "mean":
            yield from _over(np.add.accumulate(np.array(totals, dtype=dtype))[-1], n_rows)
        if self.batches[0].reduction == "none":
            yield from _means_of(np.concatenate([batch.losses for batch in self.batches]))


def _over(total: np.floating, count: float) -> Iterator[np.floating | float]:
    yield total / total.dtype.type(count)
    yield float(total) / count


def _means_of(losses: NDArray[np.floating]) -> Iterator[np.floating | float]:
    """Yield the mean of an array as numpy and as torch add it up."""
    import torch

    yield losses.mean()
    yield float(torch.from_numpy(losses).mean())


def ranges(section: Section, number: float) -> Iterator[Section]:
    """Yield ranges of successive batches whose mean in float64 is the number, the latest first.

    A range does not hold a batch twice: two passes over the same rows are no section.
    """
    batches = section.batches
    found = {ends for walk in section.walks for ends in walk.ends(number)}
    for end, start in sorted(((end, -start) for start, end in found), reverse=True):
        section = Section(_last_without_repetition(batches[-start:end]))
        if section.gives(number):
            yield section


def _flat(tensors: Sequence[Any]) -> Any:
    """Return the numbers of tensors one after the other."""
    import torch

    return torch.cat([one if one.ndim == 1 else one.reshape(-1) for one in tensors])


def _last_without_repetition(batches: Sequence[Batch]) -> Sequence[Batch]:
    seen: set[bytes] = set()
    for index in range(len(batches) - 1, -1, -1):
        if batches[index].digest in seen:
            return batches[index + 1 :]
        seen.add(batches[index].digest)
    return batches
