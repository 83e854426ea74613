"""Post-hoc calibrators: scikit-learn estimators whose ``X`` holds a model's probabilities.

Each public name is imported when it is first used; torch is loaded by fitting with it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup.calibrators.affine import PlattCalibrator as PlattCalibrator
    from trueup.calibrators.affine import ShiftCalibrator as ShiftCalibrator
    from trueup.calibrators.affine import TemperatureCalibrator as TemperatureCalibrator
    from trueup.calibrators.base import Calibrator as Calibrator
    from trueup.calibrators.calibrated_model import CalibratedModel as CalibratedModel
    from trueup.calibrators.field_offset import FieldOffsetCalibrator as FieldOffsetCalibrator
    from trueup.calibrators.ilps import ILPSCalibrator as ILPSCalibrator
    from trueup.calibrators.judging.calibrator_table import CalibratorScore as CalibratorScore
    from trueup.calibrators.judging.calibrator_table import CalibratorTable as CalibratorTable
    from trueup.calibrators.judging.compare import compare_calibrators as compare_calibrators
    from trueup.calibrators.judging.drift import DRIFT_WINDOWS as DRIFT_WINDOWS
    from trueup.calibrators.judging.guard import Guarded as Guarded
    from trueup.calibrators.judging.guard_decision import GuardDecision as GuardDecision
    from trueup.calibrators.networks.neural import NeuralCalibrator as NeuralCalibrator
    from trueup.calibrators.steps import HistogramCalibrator as HistogramCalibrator
    from trueup.calibrators.steps import IsotonicCalibrator as IsotonicCalibrator
    from trueup.calibrators.stored.offsets import OffsetTable as OffsetTable
    from trueup.calibrators.stored.offsets import offset_table as offset_table
    from trueup.calibrators.stored.storage import load_calibrator as load_calibrator
    from trueup.calibrators.stored.storage import save_calibrator as save_calibrator

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
