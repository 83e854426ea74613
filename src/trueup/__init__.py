"""Calibrated metrics and what follows from them: decide, tune, monitor.

``import trueup`` loads no scientific package: each public name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup.evaluation.bias_cost import BiasCostInterval as BiasCostInterval
    from trueup.evaluation.bias_cost import BiasTest as BiasTest
    from trueup.evaluation.bias_cost import bias_cost_interval as bias_cost_interval
    from trueup.evaluation.bias_cost import bias_test as bias_test
    from trueup.evaluation.calibrated_losses import calibrated_brier_score as calibrated_brier_score
    from trueup.evaluation.calibrated_losses import calibrated_log_loss as calibrated_log_loss
    from trueup.evaluation.calibrated_losses import (
        calibrated_mean_squared_error as calibrated_mean_squared_error,
    )
    from trueup.evaluation.calibrated_losses import (
        calibrated_poisson_deviance as calibrated_poisson_deviance,
    )
    from trueup.evaluation.evaluate import evaluate as evaluate
    from trueup.evaluation.files import evaluate_files as evaluate_files
    from trueup.fields.calibration import FieldCalibration as FieldCalibration
    from trueup.fields.calibration import FieldCells as FieldCells
    from trueup.fields.count_ratio import actual_over_expected as actual_over_expected
    from trueup.fields.levels import combine_fields as combine_fields
    from trueup.fields.measure import ClassCalibration as ClassCalibration
    from trueup.fields.measure import class_calibration as class_calibration
    from trueup.fields.measure import field_calibration as field_calibration
    from trueup.fields.measure import field_calibration_error as field_calibration_error
    from trueup.fields.reliability import expected_calibration_error as expected_calibration_error
    from trueup.fields.residuals import FieldResiduals as FieldResiduals
    from trueup.fields.residuals import mean_residuals as mean_residuals
    from trueup.losses import Loss as Loss
    from trueup.scoring.result import Evaluation as Evaluation
    from trueup.scoring.result import require_same_rows as require_same_rows
    from trueup.splits import CrossFit as CrossFit
    from trueup.splits import HoldOut as HoldOut
    from trueup.splits import InSample as InSample
    from trueup.splits import Rolling as Rolling
    from trueup.splits import Split as Split

__version__ = "0.1.0"

__getattr__, __dir__ = hand_on(__name__)
__all__ = ["__version__", *__dir__()]
