"""Trueup for Optuna: tune on the calibrated metric, over seeds, with a stated error rate.

Each public name is imported when it is first used, so that ``import trueup_optuna`` loads nothing
else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup_optuna.final.confirmation import Confirmation as Confirmation
    from trueup_optuna.final.confirmation import confirm as confirm
    from trueup_optuna.final.final_race import finals as finals
    from trueup_optuna.final.race_table import RaceTable as RaceTable
    from trueup_optuna.objective import SeedObjective as SeedObjective
    from trueup_optuna.pruner import SeedRacePruner as SeedRacePruner
    from trueup_optuna.runtime.heartbeat import recover_stale as recover_stale
    from trueup_optuna.runtime.journal import open_journal as open_journal
    from trueup_optuna.seeds import SeedList as SeedList
    from trueup_optuna.self_tuning import SelfTuningLearner as SelfTuningLearner
    from trueup_optuna.study.selection import BestConfig as BestConfig
    from trueup_optuna.study.selection import select_best as select_best
    from trueup_optuna.study.study_report import StudyReport as StudyReport
    from trueup_optuna.study.study_report import report_study as report_study

_HOME = {
    "BestConfig": "trueup_optuna.study.selection",
    "Confirmation": "trueup_optuna.final.confirmation",
    "RaceTable": "trueup_optuna.final.race_table",
    "SeedList": "trueup_optuna.seeds",
    "SeedObjective": "trueup_optuna.objective",
    "SeedRacePruner": "trueup_optuna.pruner",
    "SelfTuningLearner": "trueup_optuna.self_tuning",
    "StudyReport": "trueup_optuna.study.study_report",
    "confirm": "trueup_optuna.final.confirmation",
    "finals": "trueup_optuna.final.final_race",
    "open_journal": "trueup_optuna.runtime.journal",
    "recover_stale": "trueup_optuna.runtime.heartbeat",
    "report_study": "trueup_optuna.study.study_report",
    "select_best": "trueup_optuna.study.selection",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trueup_optuna' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        if error.name in ("joblib", "sklearn"):
            raise ImportError(
                f"{name} needs scikit-learn. Run: pip install 'trueup[optuna,sklearn]'"
            ) from error
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
