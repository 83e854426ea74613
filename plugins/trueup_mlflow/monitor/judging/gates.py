"""Gates for cron and CI: the newest batches of monitored versions against thresholds."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.judging.registry import Checked, aliases_of_models, checked_versions
from trueup_mlflow.monitor.judging.threshold import duration, threshold_of
from trueup_mlflow.monitor.judging.verdict import (
    State,
    above_threshold,
    realized_of,
    short,
    state_of,
)
from trueup_mlflow.monitor.store import monitor_runs, records_of
from trueup_mlflow.write.monitor_items import BatchRecord, of_newest_metric

Code = Literal["fine", "above", "stale", "not trusted", "no batch"]


@dataclass(frozen=True)
class Gate:
    """How one version stands at its gate.

    Attributes
    ----------
    model, version : str
        As in ``models:/<model>/<version>``.
    aliases : tuple of str
        Aliases of the version.
    batch : BatchRecord or None
        Its newest batch; None where there is a check and no batch yet.
    code : {"fine", "above", "stale", "not trusted", "no batch"}
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
    batch: BatchRecord | None
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
            **_plain(self.batch),
        }


def _plain(newest: BatchRecord | None) -> dict[str, Any]:
    if newest is None:
        return {"time": None, "n": 0, "realized": None, "reasons": []}
    return {
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
        Age of the newest batch, or of the check where there is no batch, from which on a version
        is stale: "36h", "2d", "1w".

    Returns
    -------
    list of Gate
        In the order of model and version, those without a batch yet too. No model and no check is
        loaded.

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
    found = _monitored({name for name, _ in asked}, client)
    checks = checked_versions({one.model for one in found})
    known = {(one.model, one.version) for one in found}
    found += [_Monitored(*key, ()) for key in checks if key not in known]
    monitored = sorted(
        (one for one in found if one.is_of(asked)), key=lambda one: (one.model, one.number)
    )
    there = [one for one in monitored if one.records and (one.model, one.version) in checks]
    _require_batches(model_uris, asked, there)
    newest = {one.model: one.number for one in there}
    aliases = aliases_of_models({one.model for one in monitored}, client)
    gates = []
    for one in monitored:
        of_model = aliases.get(one.model, {})
        own = tuple(alias for alias, version in of_model.items() if version == one.version)
        is_newest = not of_model and newest.get(one.model, 0) <= one.number
        check = checks.get((one.model, one.version))
        threshold = None if check is None else check.fail_above
        if fail_above is not None and one.records:
            threshold = threshold_of(fail_above, one.records[-1].raw.get("reference"))
        code, note = (
            _waiting(check, oldest) if not one.records else judged(one.records, threshold, oldest)
        )
        gates.append(
            Gate(
                model=one.model,
                version=one.version,
                aliases=own,
                batch=one.records[-1] if one.records else None,
                code=code,
                note=note,
                fail_above=threshold,
                counts=check is not None and (bool(asked or own) or is_newest),
                state=state_of(one.records, threshold),
                deleted=check is None,
            )
        )
    return gates


def _waiting(check: Checked | None, oldest: datetime | None) -> tuple[Code, str]:
    """Return what a gate says of a version whose first batch has not come."""
    if check is None or oldest is None or check.since >= oldest.timestamp() * 1000.0:
        return "no batch", ""
    made = datetime.fromtimestamp(check.since / 1000.0, UTC)
    return "stale", f"STALE: the check is of {made:%Y-%m-%d}"


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
    """A version and its batches."""

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
