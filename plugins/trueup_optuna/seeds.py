"""The seeds of a study: those of the race, and those that only a confirmation may use."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from trueup.arguments import whole_number
from trueup.errors import InvalidInputError


@dataclass(frozen=True)
class SeedList:
    """Seeds 0 to n - 1 for search and finals; the next ``confirm`` ones for confirmation alone.

    Parameters
    ----------
    n : int
        Seeds that search and finals may use, at least 1; every configuration meets them in the same
        order, with a budget from another one on.
    confirm : int, default 5
        Seeds that nothing but :func:`trueup_optuna.confirm` can draw, at least 0.
    values : tuple of int, optional
        Other seeds than 0, 1, 2, ...: ``n + confirm`` different ones.

    Examples
    --------
    >>> SeedList(3, confirm=2).search, SeedList(3, confirm=2).reserved
    ((0, 1, 2), (3, 4))
    """

    n: int
    confirm: int = 5
    values: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, value, least in (("n", self.n, 1), ("confirm", self.confirm, 0)):
            number = whole_number(name, value, least, "Give a number of seeds.")
            object.__setattr__(self, name, number)
        if self.values is not None:
            self._check_values(self.values)

    def _check_values(self, values: tuple[int, ...]) -> None:
        if len(values) != self.n + self.confirm:
            raise InvalidInputError(
                f"values must hold n + confirm = {self.n + self.confirm} seeds",
                f"{len(values)}",
                "Give one seed for each index.",
            )
        if len(set(values)) != len(values):
            raise InvalidInputError(
                "values must be different seeds", repr(values), "Remove the repeated ones."
            )

    @classmethod
    def of(cls, seeds: SeedList | Sequence[int]) -> SeedList:
        """Return the seed list itself, or one of the given seeds without any for confirmation."""
        if isinstance(seeds, SeedList):
            return seeds
        try:
            values = tuple(operator.index(seed) for seed in seeds)
        except TypeError:
            raise InvalidInputError(
                "seeds must be a SeedList or a sequence of integers",
                repr(seeds),
                "Use SeedList(20) for twenty seeds.",
            ) from None
        return cls(len(values), confirm=0, values=values)

    @property
    def _all(self) -> tuple[int, ...]:
        return tuple(range(self.n + self.confirm)) if self.values is None else self.values

    @property
    def search(self) -> tuple[int, ...]:
        """The seeds of search and finals, in order."""
        return self._all[: self.n]

    @property
    def reserved(self) -> tuple[int, ...]:
        """The seeds of the confirmation, in order."""
        return self._all[self.n :]
