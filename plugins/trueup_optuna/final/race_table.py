"""The table of a race: all configurations with their seeds, survivors first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from trueup.presentation import Line, Presented
from trueup_optuna.study.companions import companion
from trueup_optuna.study.ranking import CONFIG, SEED_INDEX, Ranking, ranking_of
from trueup_optuna.study.trial_state import SeedRecord

if TYPE_CHECKING:
    import pandas as pd


_SHOWN = 10
"""Configurations in a table or picture: the best ones."""


@dataclass(frozen=True)
class RaceRow:
    """One configuration at the end of the race.

    Attributes
    ----------
    number : int
        Number of its trial in the study.
    params : dict
        Its parameters.
    mean, standard_error : float
        Over its seeds, in units of the metric.
    n_seeds : int
        Seeds of search and finals.
    eliminated_by : int or None
        Number of the trial that eliminated it.
    records : tuple of SeedRecord
        The result of each seed, in order.
    shrunken_mean : float or None
        The mean drawn to its neighbourhood, which the sampler of a study with a budget is told;
        None in others.
    """

    number: int
    params: dict[str, Any]
    mean: float
    standard_error: float
    n_seeds: int
    eliminated_by: int | None
    records: tuple[SeedRecord, ...] = ()
    shrunken_mean: float | None = None


@dataclass(frozen=True)
class RaceTable(Presented):
    """Result of the finals.

    Attributes
    ----------
    rows : tuple of RaceRow
        Survivors first, best first.
    selected : int
        Number of the selected trial.
    search_trainings, final_trainings : int
        Finished trainings of search and finals.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import finals
    >>> table = finals(study, train, budget=4)
    >>> table.selected in {row.number for row in table.rows}
    True
    """

    rows: tuple[RaceRow, ...]
    selected: int
    search_trainings: int
    final_trainings: int

    def summary(self) -> str:
        """Return what was selected, and what it took, in words."""
        return (
            f"Trial {self.selected} of {len(self.rows)} configurations, after "
            f"{self.search_trainings} trainings in the search and {self.final_trainings} in the "
            "finals."
        )

    def lines(self) -> list[Line]:
        """Return the mean of the best configurations, give or take its standard error."""
        return row_lines(self.rows, self.selected)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame, a column for each parameter and ``selected``."""
        import pandas as pd

        return pd.DataFrame.from_records(
            [
                {
                    "number": row.number,
                    "selected": row.number == self.selected,
                    "mean": row.mean,
                    "shrunken_mean": row.shrunken_mean,
                    "standard_error": row.standard_error,
                    "n_seeds": row.n_seeds,
                    "eliminated_by": row.eliminated_by,
                    **{f"params_{name}": value for name, value in row.params.items()},
                }
                for row in self.rows
            ]
        )


def row_lines(rows: Sequence[RaceRow], selected: int) -> list[Line]:
    """Return the best configurations as lines of a table or picture."""
    return [
        Line(
            f"trial {row.number}, {row.n_seeds} seed{'s' if row.n_seeds > 1 else ''}"
            f"{', selected' if row.number == selected else ''}",
            row.mean,
            row.mean - row.standard_error,
            row.mean + row.standard_error,
        )
        for row in rows[:_SHOWN]
    ]


def claim_of(trial: FrozenTrial) -> tuple[int, int]:
    """Return the configuration and the seed index of a trial of the finals."""
    return trial.user_attrs[CONFIG], trial.user_attrs[SEED_INDEX]


def race_table(study: optuna.Study) -> RaceTable:
    """Return all configurations of a study, survivors first."""
    table = ranking_of(study)
    order = np.lexsort((table.score, ~table.contenders))
    rows = tuple(_row(table, int(index)) for index in order if table.n_seeds[index] > 0)
    return RaceTable(
        rows,
        selected=table.numbers[table.best()],
        search_trainings=int(table.n_searched.sum()),
        final_trainings=count_finals(study),
    )


def _row(table: Ranking, index: int) -> RaceRow:
    trial = table.trials[index]
    out = table.eliminations.get(trial.number)
    return RaceRow(
        trial.number,
        dict(trial.params),
        float(table.sign * table.means[index]),
        float(table.standard_errors[index]),
        int(table.n_seeds[index]),
        None if out is None else out.by,
        table.records[index],
        float(table.sign * table.worth.mean[index]) if table.shrinks else None,
    )


def count_finals(study: optuna.Study) -> int:
    """Return the number of finished trainings in the finals of a study."""
    race = companion(study, "finals")
    if race is None:
        return 0
    return len(
        {claim_of(t) for t in race.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))}
    )
