"""Trueup for Optuna: tune on the calibrated metric, over seeds, with a stated error rate.

Each public name is imported when it is first used, so that ``import trueup_optuna`` loads nothing
else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

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

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
