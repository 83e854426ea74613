"""Neural Calibration: a line plot of the logit plus a network on the fields."""

from __future__ import annotations

from dataclasses import fields as parts_of

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from trueup.calibrators.base import Calibrator
from trueup.calibrators.field_offset import Offsets, fit_in_turns, total_offset
from trueup.calibrators.inputs import (
    UNSEEN,
    FieldArrays,
    FloatArray,
    chosen_fields,
    codes_of,
    fit_levels,
    to_logit,
)
from trueup.calibrators.line_plot import (
    LinePlot,
    fit_shared_line_plot,
    quantile_knots,
    rows_at_knots,
)
from trueup.calibrators.networks.network import Training
from trueup.errors import InvalidInputError

FieldCodes = dict[str, NDArray[np.intp]]


class NeuralCalibrator(Calibrator):
    """Calibrated logit = eta(logit) + g(fields), trained jointly (Eq. 7 of the paper).

    Parameters
    ----------
    fields : str or list of str, optional
        Names of the fields that the network reads: the sensitive field alone, or by default every
        field given to ``fit``. Floats are cut at quantiles.
    embedding : int, default 8
        Size of the embedding of a level; the paper's networks use 256.
    hidden : tuple of int, default (32, 32)
        Sizes of the ReLU layers; the paper's networks use (200, 200).
    offsets : bool, default True
        Fit a shrunk offset per level, as :class:`FieldOffsetCalibrator` does, before the network,
        which then has to improve on it, and again with the line plot after it. False is the
        paper's g. With k > 2 classes there are none.
    learning_rate, weight_decay, batch_size : float, float, int
        Adam's step, its decoupled decay, and the rows of a step.
    epochs, patience : int
        Largest number of epochs, and the number of epochs without gain on held-out rows after which
        training stops. The paper trains one epoch.
    validation_fraction : float, default 0.1
        Share of the rows that decide which epoch is kept; they are not trained on. 0 keeps the
        last.
    n_knots, ridge : int, float
        The line plot's knots and the ridge of the fit that it starts from, see
        :class:`ILPSCalibrator`.
    random_state : int, default 0
        Seed of the start and of the order of the rows.

    Attributes
    ----------
    levels_ : dict of FieldLevels
        The levels of each field; unseen values get an embedding of zeros.
    network_ : Network
        g as arrays: predicting and loading need no torch.
    epoch_ : int
        The epoch that was kept; 0 means that the network gave no gain.

    Notes
    -----
    The prediction is non-decreasing in the model's logit for fixed fields, exactly. With k > 2
    classes, which the paper leaves open, eta is one line plot of the log-probabilities that all
    classes share, and one bias per class; g has an output for each class. Line plots of their own
    would not keep the order of the classes in a row. The network starts at zero, so that epoch 0 is
    :class:`FieldOffsetCalibrator`. After its last step a network is off in the mean by chance; the
    convex fit that follows takes that out.

    References
    ----------
    Pan et al. (2020), Field-aware Calibration, Section 4.2. Deviations: the start, increments that
    are positive by construction in place of the soft penalty, the offsets, early stopping.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import NeuralCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(0.1, 0.6, 500), rng.choice(["news", "shop"], 500)
    >>> click = rng.random(500) < p
    >>> calibrator = NeuralCalibrator(fields="site", epochs=1).fit(p, click, fields={"site": site})
    >>> calibrator.predict_proba(p[:3], fields={"site": site[:3]}).shape
    (3, 2)
    """

    state_names = ("levels_", "network_", "eta_", "offsets_", "epoch_")
    multiclass = True

    def __init__(
        self,
        *,
        fields: str | list[str] | None = None,
        embedding: int = 8,
        hidden: tuple[int, ...] = (32, 32),
        offsets: bool = True,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        batch_size: int = 256,
        epochs: int = 10,
        patience: int = 2,
        validation_fraction: float = 0.1,
        n_knots: int = 50,
        ridge: float = 3.0,
        random_state: int = 0,
    ) -> None:
        self.fields = fields
        self.embedding = embedding
        self.hidden = hidden
        self.offsets = offsets
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_knots = n_knots
        self.ridge = ridge
        self.random_state = random_state

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:
        columns = chosen_fields(fields, self.fields, type(self).__name__)
        self.levels_ = {name: fit_levels(column) for name, column in columns.items()}
        codes = codes_of(self.levels_, columns, type(self).__name__)
        self._fit_margin(to_logit(p), y, codes, weight)

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:
        codes = codes_of(self.levels_, fields, type(self).__name__)
        margin = self.eta_(to_logit(p)) + self._network_output(codes, p)
        if p.ndim == 2:
            return np.asarray(softmax(margin, axis=1))
        return np.asarray(expit(margin + self._offset(codes, len(p))))

    def _fit_margin(
        self, margin: FloatArray, y: FloatArray, codes: FieldCodes, weight: FloatArray
    ) -> None:
        from trueup.calibrators.networks.neural_training import (
            LinePlotEta,
            SharedLinePlotEta,
            train,
        )

        held_out = self._held_out(len(y))
        n_codes = [levels.n_codes for levels in self.levels_.values()] or [1]
        self.offsets_: dict[str, FloatArray] = {}
        if margin.ndim == 2:
            early = (part[~held_out] for part in (margin, y, weight))
            shared = fit_shared_line_plot(*early, n_knots=self.n_knots, ridge=self.ridge)
            rows = rows_at_knots(margin.ravel(), shared.line_plot.knots, True)
            eta: LinePlotEta = SharedLinePlotEta(rows, shared)
        else:
            start = self._convex(margin, y, codes, weight, ~held_out)
            eta = LinePlotEta(
                rows_at_knots(margin, start.knots, True, self._offset(codes, len(y))), start
            )
        stacked = _stacked(codes, len(y))
        trained = train(eta, stacked, n_codes, y, weight, held_out, self._training())
        self.network_, self.eta_, self.epoch_ = trained.network, trained.eta, trained.epoch
        fixed = self._network_output(codes, margin)
        if margin.ndim == 2:
            self.eta_ = fit_shared_line_plot(
                margin, y, weight, n_knots=self.n_knots, ridge=self.ridge, fixed=fixed
            )
        elif self.offsets:
            every = np.ones(len(y), dtype=np.bool_)
            self.eta_ = self._convex(margin, y, codes, weight, every, fixed)

    def _convex(
        self,
        margin: FloatArray,
        y: FloatArray,
        codes: FieldCodes,
        weight: FloatArray,
        chosen: NDArray[np.bool_],
        fixed: FloatArray | float = 0.0,
    ) -> LinePlot:
        """Fit the line plot and, if asked for, the offsets; return the line plot."""
        used = {name: code[chosen] for name, code in codes.items()} if self.offsets else {}
        line_plot, offsets = fit_in_turns(
            margin[chosen],
            y[chosen],
            weight[chosen],
            used,
            {name: Offsets.none(self.levels_[name].n_codes) for name in used},
            knots=quantile_knots(margin, weight, self.n_knots),
            ridge=self.ridge,
            fixed=fixed,
        )
        self.offsets_ = {name: part.values for name, part in offsets.items()}
        return line_plot

    def _offset(self, codes: FieldCodes, n: int) -> FloatArray:
        return total_offset({name: codes[name] for name in self.offsets_}, self.offsets_, n)

    def _network_output(self, codes: FieldCodes, like: FloatArray) -> FloatArray:
        output = self.network_(_stacked(codes, len(like)))
        return output if like.ndim == 2 else output[:, 0]

    def _held_out(self, n: int) -> NDArray[np.bool_]:
        if not 0.0 <= self.validation_fraction < 1.0:
            raise InvalidInputError(
                "validation_fraction must be in [0, 1)", repr(self.validation_fraction), "Use 0.1."
            )
        chosen = np.random.default_rng(self.random_state).permutation(n)
        held_out = np.zeros(n, dtype=np.bool_)
        held_out[chosen[: int(self.validation_fraction * n)]] = True
        return held_out

    def _training(self) -> Training:
        options = {part.name: getattr(self, part.name) for part in parts_of(Training)}
        return Training(**options | {"hidden": tuple(self.hidden)})


def _stacked(codes: FieldCodes, n: int) -> NDArray[np.intp]:
    if not codes:
        return np.full((n, 1), UNSEEN, dtype=np.intp)
    return np.stack(list(codes.values()), axis=1)
