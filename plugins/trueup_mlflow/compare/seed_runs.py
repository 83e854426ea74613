"""Read the runs of one pipeline, one for each seed, from an MLflow store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from trueup.decide.pairing import Seed
from trueup.errors import InvalidInputError
from trueup.user_warning import warn_user
from trueup_mlflow.compare.stored_run import PARENT_TAG, StoredRun, seed_of
from trueup_mlflow.write.items import COMPARISON_ROLE, ROLE_TAG, is_of_ours
from trueup_mlflow.write.runs import all_pages, children_of, store_of

SeedRuns = Mapping[Seed, StoredRun]
"""The runs of a pipeline by their seed, in order of their start."""

_LOG_TO_TRAINING = (
    "Log the score of a training to its own run: trueup evaluate --log-to-mlflow RUN_ID, or "
    "log_evaluation(run_id=...)."
)


@dataclass(frozen=True)
class RunReader:
    """Where runs are looked up, and the parameter or tag that holds their seed.

    Without one the runs are numbered by their start.
    """

    client: MlflowClient
    experiment_ids: Sequence[str]
    seed_key: str | None
    _read: dict[str, SeedRuns] = field(default_factory=dict, init=False, repr=False)

    def read(self, role: str, filter_string: str) -> SeedRuns:
        """Return the runs of a pipeline; a filter is asked for once.

        A run that has children with a seed stands for these children, so a filter may match either
        the parents of seeds or the runs themselves. Runs that hold a result of trueup and trained
        nothing are left out, which is a warning where they are no comparisons.

        Raises InvalidInputError if the filter is malformed, no run matches, a run has no seed, or
        two finished runs have the same seed.
        """
        if filter_string not in self._read:
            self._read[filter_string] = self._find(role, filter_string)
        return self._read[filter_string]

    def _find(self, role: str, filter_string: str) -> SeedRuns:
        left_out: list[Run] = []
        try:
            leaves = self._leaves(filter_string, left_out)
            runs = {run.info.run_id: run for run in leaves}
        except MlflowException as refusal:
            if refusal.error_code != "INVALID_PARAMETER_VALUE":
                raise
            raise InvalidInputError(
                f"{role} must be a filter that MLflow understands; got {filter_string!r}: "
                f"{refusal.message} Write it as in \"params.model = 'DeepFM'\"."
            ) from refusal
        if not runs:
            others = f", and {_no_trainings(left_out)}" if left_out else ""
            raise InvalidInputError(
                f"{role} must match at least one run",
                f"none for {filter_string!r}{others}",
                f"Check the filter and experiment_names. {store_of(self.client)}",
            )
        if left_out:
            warn_user(f"{role} leaves out {_no_trainings(left_out)}. {_LOG_TO_TRAINING}")
        ordered = sorted(runs.values(), key=lambda run: (run.info.start_time, run.info.run_id))
        seeds = [self._seed(role, run, position) for position, run in enumerate(ordered)]
        return _one_per_seed(role, zip(seeds, map(StoredRun.of, ordered), strict=True))

    def _leaves(self, filter_string: str, left_out: list[Run]) -> Iterator[Run]:
        ids = list(self.experiment_ids)
        for run in all_pages(self.client.search_runs, ids, filter_string):
            if is_of_ours(run.data.tags):
                if run.data.tags.get(ROLE_TAG) != COMPARISON_ROLE:  # each comparison makes one
                    left_out.append(run)
                continue
            children = self._children(run)
            trained = (child for child in children if not is_of_ours(child.data.tags))
            seeds = [
                one for one in trained if self.seed_key is None or self._seed_text(one) is not None
            ]
            yield from seeds or [run]

    def _children(self, run: Run) -> Iterator[Run]:
        return children_of(self.client, self.experiment_ids, run.info.run_id)

    def _seed_text(self, run: Run) -> str | None:
        key = self.seed_key
        for source, name in (
            (run.data.params, key),
            (run.data.tags, key),
            (run.data.tags, f"trueup.{key}"),
        ):
            if name in source:
                return str(source[name])
        return None

    def _seed(self, role: str, run: Run, position: int) -> Seed:
        text = str(position) if self.seed_key is None else self._seed_text(run)
        if text is None:
            raise InvalidInputError(
                f"{role} must match runs with the parameter or tag {self.seed_key!r}",
                f"run {run.info.run_id} without",
                f"{self._relation(run)}Log it, name another seed_key, or pass seed_key=None.",
            )
        return seed_of(text)

    def _relation(self, run: Run) -> str:
        """Say whether a run is a parent or a child, and the filter that would do."""
        parent = run.data.tags.get(PARENT_TAG)
        if parent is not None:
            return f"It is a child: ask for \"attributes.run_id = '{parent}'\", its parent. "
        children = list(self._children(run))
        if not children:
            return ""
        filter_string = f"tags.{PARENT_TAG} = '{run.info.run_id}'"
        return f'It is the parent of {len(children)} runs: ask for them with "{filter_string}". '


def _no_trainings(runs: Sequence[Run]) -> str:
    """Return how many runs trained nothing, and what the first of them is."""
    n, first = len(runs), runs[0]
    role = first.data.tags.get(ROLE_TAG, "test set")
    return (
        f"{n} run{'s' * (n > 1)} in which nothing was trained (as {first.info.run_id}, "
        f"{first.info.run_name!r}, a run of {role})"
    )


def _one_per_seed(role: str, runs: Iterable[tuple[Seed, StoredRun]]) -> SeedRuns:
    """Let a finished run take the place of failed ones with its seed."""
    chosen: dict[Seed, StoredRun] = {}
    for seed, run in runs:
        other = chosen.get(seed)
        if other is not None and other.status == run.status == "FINISHED":
            raise InvalidInputError(
                f"{role} must match one finished run per seed",
                f"runs {other.run_id} ({other.name}) and {run.run_id} ({run.name}) for seed "
                f"{seed!r}",
                _narrower(other, run),
            )
        if other is None or other.status != "FINISHED":
            chosen[seed] = run
    return chosen


def _narrower(first: StoredRun, second: StoredRun) -> str:
    """Return the filter that tells apart two runs of one seed, as advice."""
    if first.parent != second.parent:
        parent = second.parent or first.parent
        return f"They have different parents: add \"and tags.{PARENT_TAG} = '{parent}'\"."
    if second.start > first.start:
        return f'For the later ones add "and attributes.start_time >= {second.start}".'
    return "Narrow the filter."
