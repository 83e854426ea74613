"""Runs grouped into pipelines: what was trained several times with nothing changed but the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trueup_mlflow.compare.stored_run import SEED_NAMES, StoredRun
from trueup_mlflow.write.items import SEED_PARENT_ROLE, is_of_ours

AUTOMATIC = ""
PARAMETERS = "params"
_MAX_NAME = 200


@dataclass(frozen=True)
class Pipeline:
    """Runs of one pipeline, the oldest first, and the parent of its seeds, where there is one.

    Its key, for links, is the id of the parent run, or a digest of what its runs share.
    """

    key: str
    name: str
    parent: StoredRun | None
    runs: tuple[StoredRun, ...]


@dataclass(frozen=True)
class Grouping:
    """Pipelines, how they were found, and how many runs are in none."""

    # {"parents", "params", "param:<name>", "tag:<name>"}: what the runs of a pipeline share
    by: str
    pipelines: tuple[Pipeline, ...]
    n_left_out: int


def group(runs: Sequence[StoredRun], by: str = AUTOMATIC) -> Grouping:
    """Group the runs of an experiment.

    ``by`` is "" for the parents of seeds, or equal parameters where there are none; "params",
    "param:<name>" or "tag:<name>" otherwise.
    """
    parents = _by_parent(runs)
    trained = [run for run in trainings(runs) if run.metrics]
    if by in (AUTOMATIC, "parents") and (parents or by):
        members = sum(len(pipeline.runs) for pipeline in parents)
        return Grouping("parents", tuple(parents), len(trained) - members)
    if by in (AUTOMATIC, PARAMETERS):
        return Grouping(PARAMETERS, _by_parameters(trained), 0)
    kind, _, name = by.partition(":")
    source = {run.run_id: run.params if kind == "param" else run.tags for run in trained}
    having = [run for run in trained if name in source[run.run_id]]
    found = _collect((source[run.run_id][name], run) for run in having)
    return Grouping(by, found, len(trained) - len(having))


def trainings(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the runs that train: neither parents of seeds nor what trueup logged of its own."""
    parents = {one.key for one in _by_parent(runs)}
    return [run for run in runs if not is_of_ours(run.tags) and run.run_id not in parents]


def count_text(runs: Sequence[StoredRun]) -> str:
    """Return how many runs there are, and how many seeds where that differs: a seed may repeat.

    Examples
    --------
    >>> count_text([])
    '0 runs'
    """
    n, seeds = len(runs), {run.seed for run in runs}
    if n and len(seeds) == n and None not in seeds:
        return f"{n} seed{'' if n == 1 else 's'}"
    of = "" if not seeds or None in seeds else f" of {len(seeds)} seed{'s' * (len(seeds) > 1)}"
    return f"{n} run{'' if n == 1 else 's'}{of}"


def choices(runs: Iterable[StoredRun]) -> list[str]:
    """Return what runs can be grouped by: parameters and the user's own tags."""
    params, tags = set[str](), set[str]()
    for run in runs:
        if not is_of_ours(run.tags):
            params.update(run.params)
            tags.update(run.tags)
    own = (name for name in tags if not name.startswith(("mlflow.", "trueup.")))
    named = [f"param:{name}" for name in sorted(params) if name not in SEED_NAMES]
    return ["parents", PARAMETERS, *named, *(f"tag:{name}" for name in sorted(own))]


def _by_parent(runs: Sequence[StoredRun]) -> list[Pipeline]:
    """Return a pipeline for each run with children that have a seed."""
    children: dict[str, list[StoredRun]] = {}
    for run in runs:
        if run.parent is not None and run.seed is not None:
            children.setdefault(run.parent, []).append(run)
    return [
        Pipeline(run.run_id, run.name, run, tuple(children.get(run.run_id, ())))
        for run in runs
        if (run.run_id in children or run.role == SEED_PARENT_ROLE) and not is_of_ours(run.tags)
    ]


def _by_parameters(runs: Sequence[StoredRun]) -> tuple[Pipeline, ...]:
    """Group runs whose parameters are equal but for the seed; a name says what differs."""
    seen: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.params.items():
            seen.setdefault(name, set()).add(value)
    n_runs = len(runs)
    counts = {name: sum(name in run.params for run in runs) for name in seen}
    telling = sorted(
        name
        for name in seen
        if name not in SEED_NAMES and (len(seen[name]) > 1 or counts[name] < n_runs)
    )
    return _collect((_described(run.params, telling), run) for run in runs)


def _described(params: Mapping[str, str], names: Sequence[str]) -> str:
    parts = [f"{name} = {params[name]}" for name in names if name in params]
    return ", ".join(parts) or "all runs"


def _collect(named: Iterable[tuple[str, StoredRun]]) -> tuple[Pipeline, ...]:
    members: dict[str, list[StoredRun]] = {}
    for name, run in named:
        members.setdefault(name, []).append(run)
    return tuple(
        Pipeline(
            hashlib.blake2b(name.encode(), digest_size=8).hexdigest(),
            name[:_MAX_NAME],
            None,
            tuple(runs),
        )
        for name, runs in members.items()
    )
