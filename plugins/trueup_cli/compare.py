"""``trueup compare``: decide between two pipelines from the shell, for people and for CI gates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import click

from trueup_cli.failures import BadInput
from trueup_cli.output import echo
from trueup_cli.wording import in_options

if TYPE_CHECKING:
    from trueup.comparison import Comparison
    from trueup_mlflow.compare.compare_runs import LoggedComparison

Gate = Literal["better", "not-worse"]
Outcome = Literal["passed", "failed", "inconclusive"]

EXIT_CODES: dict[Outcome, int] = {"passed": 0, "failed": 1, "inconclusive": 3}


@click.command("compare")
@click.argument("candidate")
@click.argument("baseline")
@click.option("--metric", required=True, help="Key of the metric, e.g. calibrated_val_log_loss.")
@click.option(
    "--gate",
    type=click.Choice(["better", "not-worse"]),
    default="better",
    show_default=True,
    help="What the candidate must show: better by more than --min-effect, or not worse by it.",
)
@click.option("--min-effect", type=float, default=0.0, show_default=True, help="In metric units.")
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@click.option("--greater-is-better", is_flag=True, help="For metrics such as accuracy.")
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
@click.option("--tracking-uri", default=None, help="MLflow store; by default that of MLflow.")
@click.option("--allow-failed", is_flag=True, help="Leave failed seeds out and record them.")
@click.option("--allow-mismatch", is_flag=True, help="Compare although fingerprints differ.")
@click.option("--candidate-name", default="candidate", help="How the sentence calls it.")
@click.option("--baseline-name", default="baseline", help="How the sentence calls it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def compare(context: click.Context, /, **options: Any) -> None:
    """Decide whether the runs of CANDIDATE beat those of BASELINE.

    Both are MLflow filter strings, such as "params.model = 'DeepFM'"; they match the runs, or the
    parents of the seeds. The decision is logged to a run of its own.

    Exit code: 0 the gate is passed, 1 it failed, 2 bad input, 3 inconclusive: train more seeds.
    """
    logged = _logged_comparison(options)
    outcome = gate_outcome(logged.comparison, options["gate"])
    names = options["candidate_name"], options["baseline_name"]
    gate = f"gate {options['gate']}: {outcome}"
    echo(_json(logged, names, outcome) if options["as_json"] else _text(logged, names, gate))
    context.exit(EXIT_CODES[outcome])


def gate_outcome(comparison: Comparison, gate: Gate) -> Outcome:
    """Say whether the interval of the difference lies on the right side of the gate's bound.

    Parameters
    ----------
    comparison : Comparison
        The decision, with its ``min_effect``.
    gate : {"better", "not-worse"}
        Whether the candidate must be better by more than ``min_effect``, or must not be worse by as
        much; without ``min_effect`` both ask the same.
    """
    worst, best = comparison.high, comparison.low
    if comparison.greater_is_better:
        worst, best = -comparison.low, -comparison.high
    bound = comparison.min_effect if gate == "not-worse" else -comparison.min_effect
    if worst < bound:
        return "passed"
    return "failed" if best > bound else "inconclusive"


def _logged_comparison(options: dict[str, Any]) -> LoggedComparison:
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        from trueup_mlflow.compare.compare_runs import ComparisonOptions, compare_and_log
        from trueup_mlflow.compare.seed_runs import RunReader, experiment_ids
    except ModuleNotFoundError as error:
        raise BadInput(f"{error}. Run: pip install 'trueup[mlflow]'") from error

    how = ComparisonOptions(
        paired={"auto": "auto", "yes": True, "no": False}[options["paired"]],  # type: ignore[arg-type]
        **{name: options[name] for name in _PASSED_ON},
    )
    try:
        with in_options():
            client = MlflowClient(options["tracking_uri"])
            ids = experiment_ids(client, options["experiment_names"] or None)
            reader = RunReader(client, ids, options["seed_key"])
            arms = options["candidate"], options["baseline"]
            return compare_and_log(*arms, options["metric"], reader, how)
    except MlflowException as error:
        raise BadInput(str(error)) from error


_PASSED_ON = (
    "min_effect",
    "confidence_level",
    "greater_is_better",
    "allow_failed",
    "allow_mismatch",
)


def _text(logged: LoggedComparison, names: tuple[str, str], gate: str) -> str:
    sentence = logged.comparison.sentence(*names)
    lines = [sentence, logged.note, gate, f"logged to run {logged.run_id}"]
    return "\n".join(line for line in lines if line)


def _json(logged: LoggedComparison, names: tuple[str, str], outcome: Outcome) -> str:
    comparison = logged.comparison
    content = {
        **comparison.to_dict(),
        "gate": outcome,
        "sentence": comparison.sentence(*names),
        "note": logged.note,
        "run_id": logged.run_id,
    }
    return json.dumps(content, indent=2, allow_nan=False)
