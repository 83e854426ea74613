"""``trueup monitor status`` and ``watch``: gates for cron and CI."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.errors import InvalidInputError, TrueupError
from trueup_cli.monitor.base import ABOVE, FINE, MODEL, NAMES, NOT_TRUSTED, monitored, sentence
from trueup_cli.shell.failures import BadInput, options_of_command, refused
from trueup_cli.shell.output import echo

if TYPE_CHECKING:
    from trueup_mlflow.monitor.judging.gates import Gate

_BAD_INPUT = 2
_CODES = {
    "fine": FINE,
    "above": ABOVE,
    "stale": ABOVE,
    "not trusted": NOT_TRUSTED,
    "no batch": FINE,
}
_TIMES = ("time_column", "name_pattern", "time_format", "modified_time")
_BY_WEIGHT = (ABOVE, _BAD_INPUT, NOT_TRUSTED, FINE)


@click.command("status")
@click.argument("model_uris", nargs=-1, metavar="[models:/NAME[/VERSION|@ALIAS]]...")
@click.option(
    "--fail-above", default=None, help="Largest error that is fine, or 1.5x the reference's."
)
@click.option(
    "--stale-after", default=None, help="Age from which the newest batch is stale: 36h, 2d."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a version.")
@monitored
def status(
    model_uris: tuple[str, ...], fail_above: str | None, stale_after: str | None, as_json: bool
) -> None:
    """List the newest batch of every version; versions with an alias, or named ones, count.

    A version with a check and no batch yet is listed too; it counts with --stale-after, by the age
    of its check.

    Exit code: 0 fine, 1 the low end of an interval or the newest realized error is above the
    threshold, or the newest batch is stale, 2 bad input, 3 an estimate is not to be trusted.

    Example: trueup monitor status --fail-above 1.5x
    """
    from trueup_mlflow import monitor as monitoring

    gates = monitoring.status(model_uris, fail_above=fail_above, stale_after=stale_after)
    if not gates and not as_json:
        echo("no model is monitored yet: see trueup monitor init and run")
    for gate in gates:
        if as_json:
            echo(json.dumps(gate.to_dict(), allow_nan=False))
            continue
        why = "the registry has it or its check no longer" if gate.deleted else "no alias"
        apart = "" if gate.counts else f" ({why}: does not count)"
        echo(f"{gate.uri} {_newest(gate)}{apart}")
    raise click.exceptions.Exit(_worst({_CODES[gate.code] for gate in gates if gate.counts}))


def _newest(gate: Gate) -> str:
    """Return the newest batch of a version and what is to be said of it, in words."""
    if gate.batch is None:
        text, note = f"no batch yet: trueup monitor run {gate.uri} --batch FILE", gate.note
    else:
        doubtful = gate.code == "fine" and gate.state.verdict != "fine"
        text = f"{gate.batch.time} {sentence(gate.batch.estimate)}"
        note = gate.note or (gate.state.sentence if doubtful else "")
    if not note:
        return text
    return f"{text} {note}" if text.endswith("?") else f"{text}. {note}"


@click.command("watch")
@MODEL
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seconds", type=float, default=None, help="Pause between looks; 10 by default.")
@click.option("--once", is_flag=True, help="Stop when the folder holds no more files.")
@click.option("--time", "--time-column", "time_column", help="Its latest is the batch's time.")
@click.option("--name-pattern", default=None, help="Pattern of file names with (the time) in it.")
@click.option("--time-format", default=None, help="Format of times that are text; ISO 8601 else.")
@click.option("--modified-time", is_flag=True, help="Take the time at which a file was modified.")
@click.option(
    "--prometheus-port",
    type=click.IntRange(0, 65535),
    default=None,
    help="Serve the latest estimate on this port.",
)
@monitored
def watch(
    model_uri: str,
    folder: Path,
    seconds: float | None,
    once: bool,
    prometheus_port: int | None,
    **times: Any,
) -> None:
    """Estimate the error on files as they come in FOLDER; they move to done/ or rejected/.

    Exit code with --once, of the worst file: 0 fine, 1 above the threshold of init, 2 rejected,
    3 an estimate is not to be trusted.

    Example: trueup monitor watch models:/demand/3 inbox --once
    """
    from trueup_mlflow.monitor.batch.watching import BatchTimes
    from trueup_mlflow.monitor.batch.watching import watch as watching

    if once and seconds is not None:
        raise BadInput("--seconds must come without --once, which looks until no file is left.")
    pause = 10.0 if seconds is None else seconds
    codes = set()
    with contextlib.ExitStack() as stack:
        exporter = _exporter(stack, model_uri, prometheus_port)
        when = BatchTimes(*(times[name] for name in _TIMES))
        files = watching(model_uri, folder, seconds=pause, once=once, times=when)
        for path, outcome in files:
            if isinstance(outcome, TrueupError):
                codes.add(_BAD_INPUT)
                echo(f"{path.name} {refused(outcome, {**options_of_command(), **NAMES})}")
                continue
            codes.add(FINE if outcome.trusted else NOT_TRUSTED)
            echo(f"{path.name} {sentence(outcome.to_dict())}")
            if exporter is not None:
                exporter.show(outcome)
    if FINE in codes or NOT_TRUSTED in codes:
        codes |= _gate(model_uri)
    raise click.exceptions.Exit(_worst(codes))


def _gate(model_uri: str) -> set[int]:
    """Return the code of the version's own threshold, where ``init`` was given one."""
    from trueup_mlflow import monitor as monitoring

    with contextlib.suppress(InvalidInputError):  # no estimate was finite: nothing was logged
        return {_CODES[gate.code] for gate in monitoring.status([model_uri])} & {ABOVE}
    return set()


def _worst(codes: set[int]) -> int:
    return next((code for code in _BY_WEIGHT if code in codes), FINE)


def _exporter(stack: contextlib.ExitStack, model_uri: str, port: int | None) -> Any:
    if port is None:
        return None
    from trueup_mlflow.monitor.prometheus import PrometheusExporter

    try:
        return stack.enter_context(PrometheusExporter(model_uri, port))
    except (ImportError, OSError) as error:
        raise BadInput(f"--prometheus-port {port}: {error}") from error
