"""The closed table of what ``load_calibrator`` makes: classes, their state, types and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.calibrators.affine import PlattCalibrator, ShiftCalibrator, TemperatureCalibrator
from trueup.calibrators.base import Calibrator
from trueup.calibrators.field_offset import FieldOffsetCalibrator
from trueup.calibrators.ilps import ILPSCalibrator
from trueup.calibrators.inputs import FieldLevels
from trueup.calibrators.judging.guard import Guarded
from trueup.calibrators.judging.guard_decision import GuardDecision, OriginChange
from trueup.calibrators.line_plot import LinePlot, SharedLinePlot
from trueup.calibrators.networks.network import Network
from trueup.calibrators.networks.neural import NeuralCalibrator
from trueup.calibrators.steps import HistogramCalibrator, IsotonicCalibrator
from trueup.calibrators.stored.nodes import (
    Node,
    Reader,
    array,
    either,
    mapping,
    named,
    number,
    optional,
    plain,
    record,
    sequence,
    whole,
)

_LABELS = "?bBhHiIlLqQefdUS"
_INTEGERS = "ilq"

_COMMON: Mapping[str, Reader] = {
    "classes_": array(_LABELS, least=1, increasing=True),
    "n_features_in_": whole(1),
}


_UNFITTED: Mapping[str, Any] = {"mapping": {}}
_LATER_OPTIONS = ("n_origins", "windows", "priority")


@dataclass(frozen=True)
class Stored:
    """A class, readers of its fitted state, and whether the parts of a state fit together."""

    kind: type[Calibrator]
    state: Mapping[str, Reader]
    agrees: Callable[[Any], bool] = lambda _: True


def read_calibrator(node: Node) -> Calibrator:
    """Read a calibrator of the table, fitted or not; refuse a state that no fit could have left."""
    content = node.value if isinstance(node.value, dict) else {}
    name = content.get("class")
    if content.keys() != {"class", "params", "state"} or str(name) not in _TABLE:
        raise node.refusal(f"one of the calibrators {sorted(_TABLE)}")
    stored = _TABLE[str(name)]
    params = dict.fromkeys(stored.kind._get_param_names(), plain)
    if stored.kind is Guarded:
        params["calibrator"] = read_calibrator
    read_params = named(params, _LATER_OPTIONS if stored.kind is Guarded else ())
    calibrator = stored.kind(**read_params(node.at("params", content["params"])))
    if content["state"] == _UNFITTED:
        return calibrator
    read_state = named({**_COMMON, **stored.state})
    calibrator.__dict__.update(read_state(node.at("state", content["state"])))
    if not (_width_agrees(calibrator) and stored.agrees(calibrator)):
        raise node.refusal(f"a {name} whose parts fit together")
    return calibrator


def _width_agrees(found: Calibrator) -> bool:
    """Say whether there is a column for each class, or one for the second of two."""
    n_classes = len(found.classes_)
    return found.n_features_in_ == n_classes or (found.n_features_in_ == 1 and n_classes == 2)


def _network_agrees(found: Network) -> bool:
    width = len(found.first_rows) * found.table.shape[1]
    for weight, bias in zip(found.weights, found.biases, strict=False):
        if weight.shape != (width, len(bias)):
            return False
        width = len(bias)
    return 0 < len(found.weights) == len(found.biases) and len(found.first_rows) > 0


_LEVEL_TYPES = {"text": "U", "integer": _INTEGERS}
_LEVELS = record(
    FieldLevels,
    lambda found: found.values.dtype.char in _LEVEL_TYPES.get(found.kind, "d"),
    values=array("Ud" + _INTEGERS, finite=False, increasing=True),
)
_LINE_PLOT = record(
    LinePlot,
    lambda found: len(found.knots) == len(found.heights),
    knots=array("d", least=2, increasing=True),
    heights=array("d"),
)
_SHARED_LINE_PLOT = record(SharedLinePlot, line_plot=_LINE_PLOT, bias=array("d", least=2))
_NETWORK = record(
    Network,
    _network_agrees,
    table=array("f", n_dims=2),
    first_rows=array(_INTEGERS),
    weights=sequence(array("f", n_dims=2)),
    biases=sequence(array("f")),
)
_ORIGIN = record(
    OriginChange,
    log_loss_standard_error=number(0.0),
    field_error_standard_error=number(0.0),
)
_DECISION = record(
    GuardDecision,
    log_loss_change=number(finite=False),
    log_loss_change_high=number(finite=False),
    field_error_change=number(finite=False),
    field_error_change_standard_error=number(finite=False),
    origins=sequence(_ORIGIN),
    window=number(0.0, 1.0),
)


def _offsets_agree(found: FieldOffsetCalibrator | NeuralCalibrator) -> bool:
    """Say whether each offset belongs to a code of a field."""
    return all(
        name in found.levels_ and len(values) == found.levels_[name].n_codes
        for name, values in found.offsets_.items()
    )


def _field_offset_agrees(found: FieldOffsetCalibrator) -> bool:
    names = found.levels_.keys()
    return names == found.offsets_.keys() == found.spreads_.keys() and _offsets_agree(found)


def _neural_agrees(found: NeuralCalibrator) -> bool:
    network, eta = found.network_, found.eta_
    n_codes = [level.n_codes for level in found.levels_.values()] or [1]
    n_outputs = len(found.classes_) if isinstance(eta, SharedLinePlot) else 1
    return (
        len(network.first_rows) == len(n_codes)
        and bool((network.first_rows >= 0).all())
        and bool((network.first_rows + n_codes <= len(network.table)).all())
        and len(network.biases[-1]) == n_outputs
        and (isinstance(eta, LinePlot) or len(eta.bias) == n_outputs)
        and _offsets_agree(found)
    )


def _guarded_agrees(found: Guarded) -> bool:
    inner = found.calibrator_
    return inner is None or (
        inner.__sklearn_is_fitted__() and len(inner.classes_) == len(found.classes_)
    )


_PROBABILITIES = array("d", low=0.0, high=1.0, least=1)

_TABLE: Mapping[str, Stored] = {
    stored.kind.__name__: stored
    for stored in (
        Stored(
            ShiftCalibrator,
            {"bias_": either(number(), array("d", least=2))},
            lambda found: np.ndim(found.bias_) == 0 or len(found.bias_) == len(found.classes_),
        ),
        Stored(PlattCalibrator, {"slope_": number(), "intercept_": number()}),
        Stored(TemperatureCalibrator, {"temperature_": number(1e-3, 1e3)}),
        Stored(
            IsotonicCalibrator,
            {
                "x_thresholds_": array("d", low=0.0, high=1.0, least=1, increasing=True),
                "y_thresholds_": _PROBABILITIES,
            },
            lambda found: len(found.x_thresholds_) == len(found.y_thresholds_),
        ),
        Stored(
            HistogramCalibrator,
            {
                "edges_": array("d", low=0.0, high=1.0, least=2, increasing=True),
                "rates_": _PROBABILITIES,
            },
            lambda found: len(found.edges_) == len(found.rates_) + 1,
        ),
        Stored(ILPSCalibrator, {"line_plot_": _LINE_PLOT}),
        Stored(
            FieldOffsetCalibrator,
            {
                "line_plot_": _LINE_PLOT,
                "levels_": mapping(_LEVELS),
                "offsets_": mapping(array("d")),
                "spreads_": mapping(number(0.0)),
            },
            _field_offset_agrees,
        ),
        Stored(
            NeuralCalibrator,
            {
                "levels_": mapping(_LEVELS),
                "network_": _NETWORK,
                "eta_": either(_LINE_PLOT, _SHARED_LINE_PLOT),
                "offsets_": mapping(array("d")),
                "epoch_": whole(0),
            },
            _neural_agrees,
        ),
        Stored(
            Guarded,
            {"decision_": _DECISION, "calibrator_": optional(read_calibrator)},
            _guarded_agrees,
        ),
    )
}
