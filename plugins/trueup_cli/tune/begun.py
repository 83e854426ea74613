"""What a study was begun with, by the options of ``trueup tune``, and whether it stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.trial import TrialState

from trueup.errors import StateMismatchError
from trueup_cli.shell.output import echo
from trueup_cli.tune.plan import TunePlan
from trueup_optuna.study.study_state import METRIC, RULE, SEEDS
from trueup_optuna.study.trial_state import seed_records


def check_begun(study: optuna.Study, plan: TunePlan) -> None:
    """Refuse a plan that goes on with other options than the study was begun with.

    Raises
    ------
    StateMismatchError
        Naming the first option that differs, and both values.
    """
    asked = _asked(plan)
    for option, begun in _begun(study).items():
        if begun is not None and begun != asked[option]:
            raise StateMismatchError(
                f"{option} must be what the study {plan.study_name!r} was begun with, {begun!r}",
                repr(asked[option]),
                "Repeat the options of the first run, or begin another study with --study-name.",
            )


def _begun(study: optuna.Study) -> dict[str, Any]:
    """Return the options that are known; a study made in Python may lack some of them."""
    facts = study.user_attrs
    rule, seeds = facts.get(RULE, {}), facts.get(SEEDS)
    return {
        "--direction": study.direction.name.lower(),
        "--loss": facts.get(METRIC),
        "--trials": rule.get("n_configs"),
        "--seeds": None if seeds is None else len(seeds["search"]),
        "--confirm": None if seeds is None else len(seeds["confirm"]),
        "--alpha": rule.get("alpha"),
        "--epsilon": rule.get("epsilon"),
        "--variance": rule.get("variance"),
    }


def _asked(plan: TunePlan) -> dict[str, Any]:
    return {
        "--direction": plan.direction,
        "--loss": plan.loss,
        "--trials": plan.trials,
        "--seeds": plan.seeds,
        "--confirm": plan.confirm,
        "--alpha": plan.alpha,
        "--epsilon": plan.epsilon,
        "--variance": plan.variance,
    }


@contextmanager
def kept_with_results(study: optuna.Study, *, new: bool) -> Iterator[None]:
    """Delete a new study where an error ends it before its first result; else say that it stays."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        echo("Interrupted; the study is kept. Go on with --resume.", err=True)
        raise
    except Exception:
        if new and _is_empty(study):
            optuna.delete_study(study_name=study.study_name, storage=study._storage)
        else:
            echo("The study is kept. Mend the error and go on with --resume.", err=True)
        raise


def _is_empty(study: optuna.Study) -> bool:
    return all(
        trial.state == TrialState.FAIL and not seed_records(trial.user_attrs)
        for trial in study.get_trials(deepcopy=False)
    )
