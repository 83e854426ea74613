"""``trueup compare``: decide between two pipelines from the shell, for people and for CI gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from trueup_cli.compare_report import Decision, Outcome, as_json, as_text, markdown
from trueup_cli.shell.failures import BadInput, in_options
from trueup_cli.shell.options import AS_JSON, GREATER_IS_BETTER, TRACKING_URI, existing_store
from trueup_cli.shell.output import echo, progress

if TYPE_CHECKING:
    from trueup.comparison import Comparison
    from trueup_mlflow.compare.seed_runs import RunReader

Gate = Literal["better", "not-worse"]
EXIT_CODES: dict[Outcome, int] = {"passed": 0, "failed": 1, "inconclusive": 3}
ROWS_DIFFER = 4
_FROM_WORST: tuple[Outcome, ...] = ("failed", "inconclusive", "passed")


@click.command("compare")
@click.argument("pipelines", nargs=-1, required=True, metavar="CANDIDATE... BASELINE")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    required=True,
    help="Key of the metric, e.g. calibrated_val_log_loss; may be given again. `both` stands for "
    "the vanilla and the calibrated one.",
)
@click.option(
    "--gate",
    type=click.Choice(["better", "not-worse"]),
    default="better",
    show_default=True,
    help="What the candidate must show: better by more than --min-effect, or not worse by it.",
)
@click.option("--min-effect", type=float, default=0.0, show_default=True, help="In metric units.")
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@GREATER_IS_BETTER
@click.option(
    "--paired",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help="Set runs with the same seed against each other; auto does from 3 shared seeds on.",
)
@click.option("--seed-key", default="seed", show_default=True, help="Parameter or tag of the seed.")
@click.option(
    "--experiment-name",
    "experiment_names",
    multiple=True,
    help="Experiment to search; may be given again. All by default.",
)
@TRACKING_URI
@click.option("--allow-failed", is_flag=True, help="Leave failed seeds out and record them.")
@click.option("--allow-mismatch", is_flag=True, help="Compare although fingerprints differ.")
@click.option("--candidate-name", default="candidate", help="How the sentence calls it.")
@click.option("--baseline-name", default="baseline", help="How the sentence calls it.")
@click.option("--names", default=None, help="How all are called, in order: 'DeepFM,Wide,MLP'.")
@click.option("--no-gate", is_flag=True, help="Exit with 0 whatever is decided.")
@AS_JSON
@click.option("--markdown", is_flag=True, help="Print a comment for a pull request.")
@click.pass_context
def compare(context: click.Context, /, **options: Any) -> None:
    """Decide whether the runs of CANDIDATE beat those of BASELINE.

    All are MLflow filter strings, such as "params.model = 'DeepFM'"; they match the runs, or the
    parents of the seeds. Each decision is logged to a run of its own. With several candidates, all
    intervals are widened for choosing the best of them, and the gate asks whether the best passes.
    With several metrics, the gate asks for all of them.

    Exit code: 0 the gate is passed, 1 it failed, 2 bad input, 3 inconclusive: train more seeds, 4
    the seeds of a pipeline were scored on different rows (not with --allow-mismatch). With
    --no-gate it is 0 for each decision.

    Example: trueup compare "run_name = 'deep'" "run_name = 'wide'" --metric calibrated_log_loss
    """
    names = _names(options)
    if options["as_json"] and options["markdown"]:
        raise BadInput("--markdown must be left out with --json; got both. Choose one.")
    decisions = _decisions(names, options)
    outcome = _outcome(decisions)
    write = markdown if options["markdown"] else as_json if options["as_json"] else as_text
    echo(write(decisions, f"gate {options['gate']}", outcome))
    context.exit(0 if options["no_gate"] else _exit_code(decisions, outcome, options))


def _exit_code(decisions: Sequence[Decision], outcome: Outcome, options: dict[str, Any]) -> int:
    own_rows = any(decision.logged.rows_differ for decision in decisions)
    return ROWS_DIFFER if own_rows and not options["allow_mismatch"] else EXIT_CODES[outcome]


def _names(options: dict[str, Any]) -> list[str]:
    """Return how the candidates and, last, the baseline are called."""
    pipelines = options["pipelines"]
    if len(pipelines) < 2:
        raise BadInput(
            f"CANDIDATE and BASELINE must both be given; got {len(pipelines)}. Name the last one."
        )
    n_candidates = len(pipelines) - 1
    if options["names"] is not None:
        names = [name.strip() for name in options["names"].split(",")]
    elif n_candidates == 1:
        names = [options["candidate_name"], options["baseline_name"]]
    else:
        numbered = [f"{options['candidate_name']} {k + 1}" for k in range(n_candidates)]
        names = [*numbered, options["baseline_name"]]
    if len(names) != len(pipelines) or len(set(names)) != len(names) or not all(names):
        raise BadInput(
            f"--names must hold {len(pipelines)} different names, one per pipeline; got {names}. "
            "Separate them by commas."
        )
    return names


def gate_outcome(comparison: Comparison, gate: Gate) -> Outcome:
    """Say whether the interval of the difference lies on the right side of the gate's bound.

    The candidate must be "better" by more than the decision's ``min_effect``, or "not-worse" by as
    much; without ``min_effect`` both ask the same.
    """
    worst, best = comparison.high, comparison.low
    if comparison.greater_is_better:
        worst, best = -comparison.low, -comparison.high
    bound = comparison.min_effect if gate == "not-worse" else -comparison.min_effect
    if worst < bound:
        return "passed"
    return "failed" if best > bound else "inconclusive"


def _outcome(decisions: Sequence[Decision]) -> Outcome:
    """Return that of the best candidate: each candidate has to pass on every metric."""
    by_candidate: dict[str, list[Outcome]] = {}
    for decision in decisions:
        by_candidate.setdefault(decision.candidate, []).append(decision.outcome)
    worst = [min(outcomes, key=_FROM_WORST.index) for outcomes in by_candidate.values()]
    return max(worst, key=_FROM_WORST.index)


def _decisions(names: Sequence[str], options: dict[str, Any]) -> list[Decision]:
    from mlflow import MlflowClient

    from trueup.decide.compare import corrected_level
    from trueup.decide.pairing import check_level
    from trueup_mlflow.compare.compare_runs import compare_and_log
    from trueup_mlflow.compare.seed_runs import RunReader
    from trueup_mlflow.write.runs import experiment_ids

    *candidates, baseline = options["pipelines"]
    how = {
        "paired": {"auto": "auto", "yes": True, "no": False}[options["paired"]],
        "confidence_level": corrected_level(options["confidence_level"], len(candidates)),
        **{name: options[name] for name in ("min_effect", "greater_is_better", "allow_failed")},
    }
    allow_mismatch = options["allow_mismatch"]
    uri, found = existing_store(options["tracking_uri"]), []
    with in_options({"metric": "--metric"}), progress("compare", "decision") as count:
        check_level("confidence_level", options["confidence_level"])
        client = MlflowClient(uri)
        ids = experiment_ids(client, options["experiment_names"] or None)
        reader = RunReader(client, ids, options["seed_key"])
        metrics = _metrics(options["metrics"], reader, options["pipelines"])
        for name, candidate in zip(names, candidates, strict=False):
            for metric in metrics:
                pair = (name, names[-1])
                logged = compare_and_log(
                    candidate, baseline, metric, reader, how, pair, allow_mismatch=allow_mismatch
                )
                outcome = gate_outcome(logged.comparison, options["gate"])
                figure = figure_link(uri, logged.run_id)
                found.append(Decision(*pair, metric, logged, outcome, figure))
                count()
    return found


def figure_link(tracking_uri: str, run_id: str) -> str:
    """Return a link to the figure where a server serves it, else where it lies."""
    path = "trueup/comparison.png"
    if not tracking_uri.startswith(("http://", "https://")):
        return f"`runs:/{run_id}/{path}`"
    return f"[figure]({tracking_uri.rstrip('/')}/get-artifact?path={path}&run_uuid={run_id})"


def _metrics(asked: Sequence[str], reader: RunReader, pipelines: Sequence[str]) -> list[str]:
    """Return the metrics, `both` replaced by the one vanilla metric that has a calibrated one."""
    if "both" not in asked:
        return [*dict.fromkeys(asked)]
    runs = [reader.read("pipeline", filter_string) for filter_string in pipelines]
    keys = {key for one in runs for run in one.values() for key in (*run.metrics, *run.late)}
    pairs = sorted(key for key in keys if f"calibrated_{key}" in keys)
    if len(pairs) != 1:
        raise BadInput(
            f"--metric both must find one metric with a calibrated one; got {pairs}. Name the "
            "vanilla and the calibrated metric instead."
        )
    (key,) = pairs
    return [*dict.fromkeys([*(m for m in asked if m != "both"), key, f"calibrated_{key}"])]
