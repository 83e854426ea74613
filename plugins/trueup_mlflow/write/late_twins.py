"""Calibrated values that are not of the step that their metric shows."""

from __future__ import annotations

from mlflow.entities import Run

from trueup_mlflow.write.items import (
    bias_cost_key,
    bias_term_key,
    calibrated_key,
    is_own_key,
    late_tag,
)


def late_twins(run: Run) -> dict[str, str]:
    """Return each key beside some ``K`` that is of an earlier value than the last ``K``, and why.

    MLflow shows the last value of a metric. Where ``K`` went on without calibrated values, those
    that it shows beside ``K`` say nothing of it: their step tells, and where all was logged at one
    step the tag that autologging leaves at the end of the run.
    """
    if not any(map(is_own_key, run.data.metrics)):
        return {}
    steps = {metric.key: int(metric.step) for metric in run.data.to_proto().metrics}
    found: dict[str, str] = {}
    for key, step in steps.items():
        twin = steps.get(calibrated_key(key), step)
        said = run.data.tags.get(late_tag(key)) if calibrated_key(key) in steps else None
        if twin != step:
            said = f"it is of step {twin}, and {key} of step {step}"
        if said:
            found |= {own: said for own in steps if _is_beside(own, key)}
    return found


def _is_beside(own: str, key: str) -> bool:
    term = bias_term_key(key)
    return own in (calibrated_key(key), bias_cost_key(key), term) or (
        own.startswith(f"{term}_") and own.removeprefix(f"{term}_").isdecimal()
    )
