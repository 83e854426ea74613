"""Compare two pipelines by the runs that MLflow filter strings find, and log the decision."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from trueup.comparison import Comparison, compare, order_note
from trueup.decide.pairing import Paired
from trueup.errors import StateMismatchError, TrueupWarning
from trueup_mlflow.compare.direction import direction
from trueup_mlflow.compare.pipelines import TwoPipelines
from trueup_mlflow.compare.seed_runs import RunReader
from trueup_mlflow.write.decision_figures import comparison_figure
from trueup_mlflow.write.decision_items import (
    COMPARISON_FIGURE,
    COMPARISON_TABLE,
    comparison_metrics,
    comparison_table,
    comparison_tags,
)
from trueup_mlflow.write.items import LogItems
from trueup_mlflow.write.runs import experiment_ids, log_params, mark_as_model_training, new_run
from trueup_mlflow.write.writer import RunWriter

_ROLES = ("candidate", "baseline")
_RUN_ID = re.compile(r"[0-9a-f]{32}").fullmatch
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


@dataclass(frozen=True)
class LoggedComparison:
    """A decision and the run that it was logged to."""

    comparison: Comparison  # the decision
    run_id: str  # the run
    note: str  # what else is to be said
    rows_differ: bool = False  # whether the seeds of a pipeline were scored on rows of their own


def compare_runs(
    candidate: str,
    baseline: str,
    *,
    metric: str,
    seed_key: str | None = "seed",
    experiment_names: Sequence[str] | None = None,
    client: MlflowClient | None = None,
    paired: Paired = "auto",
    min_effect: float = 0.0,
    confidence_level: float = 0.95,
    greater_is_better: bool | None = None,
    allow_failed: bool = False,
    allow_mismatch: bool = False,
    candidate_name: str = "candidate",
    baseline_name: str = "baseline",
) -> Comparison:
    """Decide between two pipelines whose runs are in an MLflow store.

    Parameters
    ----------
    candidate, baseline : str
        MLflow filter strings, such as ``"params.model = 'DeepFM'"``. Each matches the runs of one
        pipeline, or the parents of its seeds.
    metric : str
        Key of the metric that is compared, such as ``"calibrated_log_loss"``.
    seed_key : str or None, default "seed"
        Parameter or tag with the seed of a run (``trueup.<seed_key>`` is read as well). None
        numbers the runs of a pipeline by their start, and "auto" then does not pair them.
    experiment_names : sequence of str, optional
        Experiments to search; all active ones by default.
    client : MlflowClient, optional
        Client of the tracking store; that of the current tracking URI by default.
    paired, min_effect, confidence_level, allow_failed
        As in :func:`trueup.comparison.compare`. A run that did not finish is a failed seed.
    greater_is_better : bool, optional
        Direction of the metric. Lower is better by default; a metric whose name says otherwise,
        such as ``"val_accuracy"``, is refused until the direction is given.
    allow_mismatch : bool, default False
        Compare although fingerprints differ, and record it.
    candidate_name, baseline_name : str
        What the logged run and its description call them.

    Returns
    -------
    Comparison
        The decision. It is also logged to a new run, with a table of the runs and a figure of both
        distributions, in the experiment of the candidate.

    Raises
    ------
    InvalidInputError
        If a filter matches no run, both match the same run, a seed is missing, doubled or failed,
        the metric is not there, or its name says that higher is better and nothing else does.
    StateMismatchError
        If the fingerprints of two runs that meet differ: their numbers come from other rows.

    Examples
    --------
    >>> import mlflow
    >>> from trueup_mlflow import compare_runs
    >>> for seed in range(5):
    ...     for pipeline, loss in (("deep", 0.41), ("wide", 0.44)):
    ...         with mlflow.start_run(run_name=pipeline):
    ...             _ = mlflow.log_param("seed", seed)
    ...             mlflow.log_metric("loss", loss + 0.001 * seed**2 * (pipeline == "deep"))
    ...             mlflow.set_tag("trueup.fingerprint.loss", "the same rows")
    >>> compare_runs("run_name = 'deep'", "run_name = 'wide'", metric="loss").n_pairs
    5
    """
    client = client or MlflowClient()
    reader = RunReader(client, experiment_ids(client, experiment_names), seed_key)
    how = {
        "paired": False if seed_key is None and paired == "auto" else paired,
        "min_effect": min_effect,
        "confidence_level": confidence_level,
        "greater_is_better": greater_is_better,
        "allow_failed": allow_failed,
    }
    names = candidate_name, baseline_name
    return compare_and_log(
        candidate, baseline, metric, reader, how, names, allow_mismatch=allow_mismatch
    ).comparison


def compare_and_log(
    candidate: str,
    baseline: str,
    metric: str,
    reader: RunReader,
    how: Mapping[str, Any],
    names: tuple[str, str] = _ROLES,
    *,
    allow_mismatch: bool = False,
) -> LoggedComparison:
    """Read both pipelines, decide, and log the decision; see :func:`compare_runs`.

    ``how`` holds keywords of :func:`compare_runs`. The default names stand for what
    the filters ask for.
    """
    both = TwoPipelines(reader.read("candidate", candidate), reader.read("baseline", baseline))
    both.check(metric, allow_failed=how["allow_failed"])
    how = {**how, "greater_is_better": direction(metric, how["greater_is_better"])}
    comparison = compare(*both.values(metric), **how)
    checked = _check_fingerprints(comparison, both, metric, allow_mismatch)
    own_rows = both.seeds_with_own_rows(metric)
    notes = [_order_note(comparison, both, metric, how), own_rows]
    note = " ".join(filter(None, notes))
    if names == _ROLES:
        names = names_of(candidate, baseline, reader.client)
    tags = comparison_tags(comparison, note, checked, names)
    asked = {"candidate": candidate, "baseline": baseline, "metric": metric}
    run_id = _log(reader.client, comparison, both, asked, tags, names)
    return LoggedComparison(comparison, run_id, note, rows_differ=bool(own_rows))


def _check_fingerprints(
    comparison: Comparison, both: TwoPipelines, metric: str, allow_mismatch: bool
) -> str:
    """Return "equal", "none" or "differ", or raise."""
    pairs = comparison.pairs if comparison.estimand == "paired" else None
    mismatch = both.fingerprint_mismatch(metric, pairs)
    if mismatch is None:
        warnings.warn(
            f"the runs have no fingerprint of {metric!r}, so nothing says that they were scored on "
            "the same rows; log it with trueup_mlflow.log_evaluation.",
            TrueupWarning,
            stacklevel=4,
        )
        return "none"
    if mismatch and not allow_mismatch:
        raise StateMismatchError(
            f"candidate and baseline must have equal fingerprints of {metric!r}",
            str(mismatch),
            "Score both on the same rows with the same split, or pass allow_mismatch=True.",
        )
    return "differ" if mismatch else "equal"


def _order_note(
    comparison: Comparison, both: TwoPipelines, metric: str, how: Mapping[str, Any]
) -> str:
    """Compare the vanilla metric too, where the runs have it beside the calibrated one."""
    vanilla = metric.removeprefix("calibrated_")
    runs = (*both.candidate.values(), *both.baseline.values())
    if vanilla == metric or not all(vanilla in run.metrics for run in runs):
        return ""
    return order_note(compare(*both.values(vanilla), **how), comparison)


def _log(
    client: MlflowClient,
    comparison: Comparison,
    both: TwoPipelines,
    asked: dict[str, str],
    tags: dict[str, str],
    names: tuple[str, str],
) -> str:
    metric = asked["metric"]
    experiment_id = next(iter(both.candidate.values())).experiment_id
    mark_as_model_training(client, experiment_id)
    run_id = new_run(client, experiment_id, tags)
    log_params(client, run_id, asked)
    writer = RunWriter(run_id, client)
    writer.log(LogItems(metric, comparison_metrics(comparison)))
    writer.log_text(comparison_table(comparison, both.named(), metric), COMPARISON_TABLE, metric)
    values = {
        role: {seed: value for seed, value in found.items() if math.isfinite(value)}
        for role, found in zip(_ROLES, both.values(metric), strict=True)
    }
    writer.log_figure(
        lambda: comparison_figure(comparison, values, metric, names), COMPARISON_FIGURE, metric
    )
    client.set_terminated(run_id)
    return run_id


def names_of(candidate: str, baseline: str, client: MlflowClient | None = None) -> tuple[str, str]:
    """Return the last quoted texts of two filters; the roles where these do not tell them apart.

    With a client, the id of a run is its name.

    Examples
    --------
    >>> names_of("params.model = 'DeepFM'", "params.model = 'MLP'")
    ('DeepFM', 'MLP')
    >>> names_of("params.depth > '3'", "params.depth <= '3'")
    ('candidate', 'baseline')
    """
    found = [_last_quoted(text) for text in (candidate, baseline)]
    if client is not None:
        found = [_name_of_run(client, text) if _RUN_ID(text) else text for text in found]
    if not all(found) or found[0] == found[1]:
        return _ROLES
    return found[0], found[1]


def _last_quoted(text: str) -> str:
    quoted = [single or double for single, double in _QUOTED.findall(text)]
    return quoted[-1] if quoted else ""


def _name_of_run(client: MlflowClient, run_id: str) -> str:
    with suppress(MlflowException):  # 32 hexadecimal digits may be anything
        return client.get_run(run_id).info.run_name or run_id
    return run_id
