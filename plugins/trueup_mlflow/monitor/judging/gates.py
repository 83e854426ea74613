"""Gates for cron and CI: the newest batches of monitored versions against thresholds."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.judging.threshold import duration, kept_threshold, threshold_of
from trueup_mlflow.monitor.judging.verdict import (
    State,
    above_threshold,
    realized_of,
    short,
    state_of,
)
from trueup_mlflow.monitor.store import monitor_runs, records_of
from trueup_mlflow.write.monitor_items import (
    CHECK_URI_TAG,
    CHECKED_URI_TAG,
    BatchRecord,
    of_newest_metric,
)

Code = Literal["fine", "above", "stale", "not trusted"]


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
        newest one of a model that has no alias at all. A deleted one never counts.
    state : State
        Verdict over all batches.
    deleted : bool
        Whether the registry has the version, or its check, no longer.
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
    deleted: bool = False

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
            "deleted": self.deleted,
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
    monitored = [one for one in _monitored({name for name, _ in asked}, client) if one.is_of(asked)]
    monitored.sort(key=lambda one: (one.model, one.number))
    thresholds = _thresholds({one.model for one in monitored})
    there = [one for one in monitored if (one.model, one.version) in thresholds]
    _require_batches(model_uris, asked, there)
    newest = {one.model: one.version for one in there}
    aliases = _aliases(newest, client)
    gates = []
    for one in monitored:
        of_model = aliases.get(one.model, {})
        own = tuple(alias for alias, version in of_model.items() if version == one.version)
        is_newest = not of_model and newest.get(one.model) == one.version
        deleted = (one.model, one.version) not in thresholds
        threshold = thresholds.get((one.model, one.version))
        if fail_above is not None:
            threshold = threshold_of(fail_above, one.records[-1].raw.get("reference"))
        code, note = judged(one.records, threshold, oldest)
        gates.append(
            Gate(
                model=one.model,
                version=one.version,
                aliases=own,
                batch=one.records[-1],
                code=code,
                note=note,
                fail_above=threshold,
                counts=not deleted and (bool(asked or own) or is_newest),
                state=state_of(one.records, threshold),
                deleted=deleted,
            )
        )
    return gates


def judged(
    records: Sequence[BatchRecord], threshold: float | None, oldest: datetime | None = None
) -> tuple[Code, str]:
    """Return what a gate says of the batches of a version, and why."""
    newest, above = records[-1], above_threshold(records, threshold)
    if above == "realized":
        last = realized_of(records)[-1]
        realized = f"{short(last.realized)} was realized on {last.day}"
        return "above", f"ABOVE {short(threshold)}: {realized}"
    if above == "interval":
        return "above", f"ABOVE {short(threshold)}"
    if oldest is not None and newest.timestamp < oldest.timestamp() * 1000.0:
        return "stale", f"STALE: the newest batch is of {newest.day}"
    if not newest.usable:
        return "not trusted", ""
    if above == "estimate":
        return "fine", f"warning: the estimate is above {short(threshold)}, its interval is not"
    return "fine", ""


@dataclass(frozen=True)
class _Monitored:
    """A version and its batches, of which there is one at least."""

    model: str
    version: str
    records: Sequence[BatchRecord]

    @property
    def number(self) -> int:
        return int(self.version)

    def is_of(self, asked: Sequence[tuple[str, str | None]]) -> bool:
        return not asked or any(
            name == self.model and version in (None, self.version) for name, version in asked
        )


def _monitored(models: Collection[str], client: MlflowClient) -> list[_Monitored]:
    """Return the monitored versions of these models, or of all if none is named."""
    found = [
        _Monitored(model, version, of_newest_metric(records_of(run)))
        for (model, version), run in monitor_runs(client, models).items()
    ]
    return [one for one in found if one.records]


def _asked(uri: str, client: MlflowClient) -> tuple[str, str | None]:
    """Return model and version of a URI; no version stands for all."""
    named = re.fullmatch(r"models:/([^/@]+)", uri)
    if named:
        return named[1], None
    version = resolve(uri, client)
    return version.name, version.version


def _require_batches(
    model_uris: Sequence[str],
    asked: Sequence[tuple[str, str | None]],
    monitored: Sequence[_Monitored],
) -> None:
    for uri, (name, version) in zip(model_uris, asked, strict=True):
        if not any(one.is_of([(name, version)]) for one in monitored):
            raise InvalidInputError(
                "model_uris must be of versions with a batch and a check",
                f"{uri!r}, which lacks one of them",
                f"Make one with: trueup monitor run models:/{name}/{version or 'VERSION'} "
                "--batch FILE, and a check that is gone with trueup monitor init.",
            )


def _aliases(models: Collection[str], client: MlflowClient) -> dict[str, dict[str, str]]:
    """Return the version of each alias of each model, in one request where the registry can."""
    try:
        found = [one for one in mlflow.search_registered_models() if one.name in models]
        return {one.name: _text(one.aliases) for one in found}
    except MlflowException:  # Unity Catalog gives the aliases of one model at a time
        return {name: _aliases_of(name, client) for name in models}


def _aliases_of(name: str, client: MlflowClient) -> dict[str, str]:
    try:
        return _text(client.get_registered_model(name).aliases)
    except MlflowException:  # the model was deleted, its monitor runs were not
        return {}


def _text(aliases: Mapping[Any, Any]) -> dict[str, str]:
    return {str(alias): str(version) for alias, version in aliases.items()}


def _thresholds(models: Collection[str]) -> dict[tuple[str, str], float | None]:
    """Return what ``init`` was told of each version with a check that is in the registry."""
    try:
        search = mlflow.search_model_versions
        found = search(filter_string=f"tags.`{CHECK_URI_TAG}` LIKE '%'")
        checks = search(filter_string=f"tags.`{CHECKED_URI_TAG}` LIKE '%'")
        uris = {f"models:/{one.name}/{one.version}" for one in checks}
        found = [one for one in found if one.tags[CHECK_URI_TAG] in uris]
    except MlflowException:  # Unity Catalog finds by a model's name alone: no word of its check
        of_models = (mlflow.search_model_versions(filter_string=f"name='{m}'") for m in models)
        found = [version for versions in of_models for version in versions]
    return {(one.name, str(one.version)): kept_threshold(one.tags) for one in found}
