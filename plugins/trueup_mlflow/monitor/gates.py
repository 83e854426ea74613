"""Gates for cron and CI: the newest batches of monitored versions against thresholds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import mlflow
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.state import State, kept_threshold, short, state_of, threshold_of
from trueup_mlflow.monitor.store import records_of
from trueup_mlflow.write.items import ROLE_TAG
from trueup_mlflow.write.monitor_items import (
    MODEL_TAG,
    MONITOR_ROLE,
    TRUSTED,
    VERSION_OF_MODEL_TAG,
    BatchRecord,
    of_newest_metric,
)

Code = Literal["fine", "above", "stale", "not trusted"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Gate:
    """How one version stands at its gate.

    Attributes
    ----------
    model, version : str
        As in ``models:/<model>/<version>``.
    aliases : tuple of str
        Aliases of the version.
    batch : BatchRecord
        Its newest batch.
    code : {"fine", "above", "stale", "not trusted"}
        What the gate says.
    note : str
        Why, in words; empty if there is nothing to say.
    fail_above : float or None
        Threshold.
    counts : bool
        Whether the version counts for the exit code: it was asked for, has an alias, or is the
        newest one of a model that has no alias at all.
    state : State
        Verdict over all batches.
    """

    model: str
    version: str
    aliases: tuple[str, ...]
    batch: BatchRecord
    code: Code
    note: str
    fail_above: float | None
    counts: bool
    state: State

    def __getitem__(self, name: str) -> Any:
        """Return an attribute by its name: gates were mappings once."""
        return getattr(self, name)

    @property
    def uri(self) -> str:
        """URI of the version."""
        return f"models:/{self.model}/{self.version}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        newest = self.batch
        return {
            "model": self.model,
            "version": self.version,
            "aliases": list(self.aliases),
            "code": self.code,
            "note": self.note,
            "counts": self.counts,
            "fail_above": self.fail_above,
            "verdict": self.state.verdict,
            "why": self.state.why,
            "time": newest.time,
            "n": newest.n,
            "realized": newest.realized,
            "metric": newest.metric,
            newest.metric: newest.estimated,
            **{name: newest.estimate[name] for name in ("low", "high", "trusted")},
            "reasons": list(newest.estimate["reasons"]),
        }


def status(
    model_uris: Sequence[str] = (),
    *,
    fail_above: float | str | None = None,
    stale_after: str | timedelta | None = None,
) -> list[Gate]:
    """Return how every monitored version stands, or those that are asked for.

    Parameters
    ----------
    model_uris : sequence of str, default ()
        ``models:/NAME``, ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS``; all by default.
    fail_above : float or str, optional
        Largest error that is fine, or "1.5x" the error of the reference; by default what ``init``
        was given for the version. The newest realized error is read as well as the estimate.
    stale_after : str or timedelta, optional
        Age of the newest batch from which on a version is stale: "36h", "2d", "1w".

    Returns
    -------
    list of Gate
        In the order of model and version. No model and no check is loaded.

    Raises
    ------
    InvalidInputError
        If a version that is asked for has no batch: no gate is open because nothing was looked at.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> _ = monitor.estimate("models:/demand/1", january, at="2026-01-31")
    >>> len(monitor.status(["models:/demand/1"]))
    1
    """
    client = MlflowClient()
    oldest = None if stale_after is None else datetime.now(UTC) - duration(stale_after)
    asked = [_asked(uri, client) for uri in model_uris]
    runs = [run for run in _monitor_runs() if not asked or _is_asked(run, asked)]
    _require_batches(model_uris, asked, runs)
    registered = {name: _registered(name, client) for name in {_model(run) for run in runs}}
    newest = {name: max(_number(run) for run in runs if _model(run) == name) for name in registered}
    gates = []
    for run in sorted(runs, key=lambda run: (_model(run), _number(run))):
        name, version = _model(run), run.data.tags[VERSION_OF_MODEL_TAG]
        own = tuple(alias for alias, of in registered[name].aliases.items() if of == version)
        is_newest = not registered[name].aliases and newest[name] == _number(run)
        records = of_newest_metric(records_of(run))
        threshold = registered[name].thresholds.get(version)
        if fail_above is not None:
            threshold = threshold_of(fail_above, records[-1].raw.get("reference"))
        code, note = judged(records, threshold, oldest)
        gates.append(
            Gate(
                model=name,
                version=version,
                aliases=own,
                batch=records[-1],
                code=code,
                note=note,
                fail_above=threshold,
                counts=bool(asked or own) or is_newest,
                state=state_of(records, threshold),
            )
        )
    return gates


def judged(
    records: Sequence[BatchRecord], threshold: float | None, oldest: datetime | None = None
) -> tuple[Code, str]:
    """Return what a gate says of the batches of a version, and why."""
    newest = records[-1]
    value, low = newest.value, newest.number("low")
    realized = [record for record in records if record.covered is not None]
    if threshold is not None and realized and (realized[-1].realized or 0.0) > threshold:
        error, day = realized[-1].realized, realized[-1].day
        return "above", f"ABOVE {short(threshold)}: {short(error)} was realized on {day}"
    if threshold is not None and low > threshold:
        return "above", f"ABOVE {short(threshold)}"
    if oldest is not None and newest.timestamp < oldest.timestamp() * 1000.0:
        return "stale", f"STALE: the newest batch is of {newest.day}"
    if newest.estimate["trusted"] is not True or math.isnan(value):
        return "not trusted", ""
    if threshold is not None and value > threshold:
        return "fine", f"warning: the estimate is above {short(threshold)}, its interval is not"
    return "fine", ""


def duration(value: str | timedelta) -> timedelta:
    """Return a duration such as "36h", "2d" or "1w".

    Raises
    ------
    InvalidInputError
        If it is written in another way.
    """
    found = None if isinstance(value, timedelta) else _DURATION.fullmatch(value.strip())
    with suppress(OverflowError):  # no number of days is that long, or nobody counted years then
        if found is not None:
            value = timedelta(**{_UNITS[found[2]]: float(found[1])})
        if isinstance(value, timedelta) and value >= timedelta(0):
            _ = datetime.now(UTC) - value
            return value
    raise InvalidInputError(
        "stale_after must be a duration such as 36h, 2d or 1w", repr(value), "Correct it."
    )


def _monitor_runs() -> list[Run]:
    experiments = [
        experiment.experiment_id
        for experiment in mlflow.search_experiments(filter_string="name LIKE 'trueup/%'")
    ]
    if not experiments:
        return []
    found = mlflow.search_runs(
        experiments,
        f"tags.`{ROLE_TAG}` = '{MONITOR_ROLE}' and metrics.{TRUSTED} >= 0",
        output_format="list",
        max_results=10_000,
    )
    return [run for run in found if records_of(run)]


def _asked(uri: str, client: MlflowClient) -> tuple[str, str | None]:
    """Return model and version of a URI; no version stands for all."""
    named = re.fullmatch(r"models:/([^/@]+)", uri)
    if named:
        return named[1], None
    version = resolve(uri, client)
    return version.name, version.version


def _require_batches(
    model_uris: Sequence[str], asked: Sequence[tuple[str, str | None]], runs: Sequence[Run]
) -> None:
    for uri, one in zip(model_uris, asked, strict=True):
        if not any(_is_asked(run, [one]) for run in runs):
            raise InvalidInputError(
                "model_uris must be of versions with a batch",
                f"{uri!r}, which has none",
                f"Make one with: trueup monitor run models:/{one[0]}/{one[1] or 'VERSION'} "
                "--batch FILE.",
            )


def _is_asked(run: Run, asked: Sequence[tuple[str, str | None]]) -> bool:
    version = run.data.tags[VERSION_OF_MODEL_TAG]
    return any(name == _model(run) and of in (None, version) for name, of in asked)


@dataclass(frozen=True)
class Registered:
    """What the registry holds of a model: the version of each alias, thresholds of versions."""

    aliases: dict[str, str]
    thresholds: dict[str, float]


def _registered(name: str, client: MlflowClient) -> Registered:
    try:
        aliases = client.get_registered_model(name).aliases
        versions = client.search_model_versions(f"name='{name}'")
    except MlflowException:  # the model was deleted, its monitor runs were not
        return Registered({}, {})
    thresholds = {
        str(version.version): value
        for version in versions
        if (value := kept_threshold(version.tags)) is not None
    }
    return Registered({str(alias): str(of) for alias, of in aliases.items()}, thresholds)


def _model(run: Run) -> str:
    return str(run.data.tags[MODEL_TAG])


def _number(run: Run) -> int:
    return int(run.data.tags[VERSION_OF_MODEL_TAG])
