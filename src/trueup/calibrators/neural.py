"""Neural Calibration: a line plot of the logit plus a network on the fields."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from trueup.bias import solve_softmax_shift
from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.levels import UNSEEN, chosen_fields, fit_levels
from trueup.calibrators.line_plot import Hats, LinePlot, fit_line_plot, hats, quantile_knots
from trueup.calibrators.network import Training
from trueup.calibrators.scores import FloatArray, to_logit
from trueup.errors import InvalidInputError


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
    classes, eta is one positive factor on the log-probabilities and one bias per class, which the
    paper leaves open. g starts at zero and eta at the convex fit, so that epoch 0 is ILPS alone.

    References
    ----------
    Pan et al. (2020), Field-aware Calibration, Section 4.2. Deviations: the start, increments that
    are positive by construction in place of the soft penalty, early stopping.
    """

    state_names = ("levels_", "network_", "eta_", "epoch_")
    multiclass = True

    def __init__(
        self,
        *,
        fields: str | list[str] | None = None,
        embedding: int = 8,
        hidden: tuple[int, ...] = (32, 32),
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
        from trueup.calibrators.neural_training import LinePlotEta, ScaledEta, train

        columns = chosen_fields(fields, self.fields, type(self).__name__)
        self.levels_ = {name: fit_levels(column) for name, column in columns.items()}
        held_out = self._held_out(len(y))
        eta = (
            ScaledEta(to_logit(p), self._start_biases(p, y, weight, ~held_out))
            if p.ndim == 2
            else LinePlotEta(*self._start_line_plot(p, y, weight, ~held_out))
        )
        n_codes = [levels.n_codes for levels in self.levels_.values()] or [1]
        codes = self._codes(columns, len(y))
        trained = train(eta, codes, n_codes, y, weight, held_out, self._training())
        self.network_, self.eta_, self.epoch_ = trained.network, trained.eta, trained.epoch

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:
        columns = chosen_fields(fields, list(self.levels_), type(self).__name__)
        correction = self.network_(self._codes(columns, len(p)))
        margin = self.eta_(to_logit(p))
        if p.ndim == 2:
            return np.asarray(softmax(margin + correction, axis=1))
        return np.asarray(expit(margin + correction[:, 0]))

    def _codes(self, columns: FieldArrays, n: int) -> NDArray[np.intp]:
        if not columns:
            return np.full((n, 1), UNSEEN, dtype=np.intp)
        codes = [self.levels_[name].codes(column) for name, column in columns.items()]
        return np.stack(codes, axis=1)

    def _held_out(self, n: int) -> NDArray[np.bool_]:
        if not 0.0 <= self.validation_fraction < 1.0:
            raise InvalidInputError(
                f"validation_fraction must be in [0, 1); got {self.validation_fraction!r}. Use 0.1."
            )
        chosen = np.random.default_rng(self.random_state).permutation(n)
        held_out = np.zeros(n, dtype=np.bool_)
        held_out[chosen[: int(self.validation_fraction * n)]] = True
        return held_out

    def _start_line_plot(
        self, p: FloatArray, y: FloatArray, weight: FloatArray, fitted: NDArray[np.bool_]
    ) -> tuple[Hats, LinePlot]:
        margin = to_logit(p)
        knots = quantile_knots(margin, weight, self.n_knots)
        rows = hats(margin[fitted], knots, unit_tails=True)
        heights = fit_line_plot(rows, y[fitted], weight[fitted], knots, ridge=self.ridge)
        return hats(margin, knots, unit_tails=True), LinePlot(knots, heights, unit_tails=True)

    def _start_biases(
        self, p: FloatArray, y: FloatArray, weight: FloatArray, fitted: NDArray[np.bool_]
    ) -> FloatArray:
        labels, margin = y[fitted].astype(np.intp), to_logit(p)[fitted]
        return -solve_softmax_shift(margin, labels, weight[fitted])

    def _training(self) -> Training:
        return Training(
            embedding=self.embedding,
            hidden=tuple(self.hidden),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            epochs=self.epochs,
            patience=self.patience,
            seed=self.random_state,
        )
