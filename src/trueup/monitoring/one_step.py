"""The one-step check model ("One-step MSE estimation of models in production")."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, TypeVar, get_args

import numpy as np

from trueup.arguments import check_one_of
from trueup.arrays import Arrays
from trueup.errors import InvalidInputError, NotFittedError
from trueup.extras import needed_by
from trueup.monitoring.batch import Batch
from trueup.monitoring.features import FeatureEncoder
from trueup.monitoring.inputs import FAR, FloatArray, finite_vector, spread_of
from trueup.monitoring.networks.fitted import CheckNetwork, FittedMLP, Head, Objective
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.storage import (
    finite,
    nest,
    read,
    require_same_names,
    require_width,
    text,
    unnest,
    untext,
    write,
)
from trueup.monitoring.trust.interval import batch_sampling_variance, log_interval
from trueup.monitoring.trust.support import SUPPORT_ROWS, SupportCheck
from trueup.read.frames import require_one_order

DEFAULT_BATCH = 1_000
Part = TypeVar("Part")


class OneStepCheckModel:
    """A network h such that the mean of ``2 (h(x) - f(x))^2`` estimates the MSE of f.

    Parameters
    ----------
    objective : {"l", "k_star", "k"}, default "l"
        What h minimises: K of Theorem 2, the tighter K*, or L = K* + 100 R (Eq. 18).
    head : {"plain", "offset"}, default "plain"
        "plain" is the paper's. "offset" is for held-out data: ``h = f - softplus(g(x, f))``.
    hidden : int, default 64
        Units of the one hidden layer.
    learning_rate, weight_decay : float
        Of Adam.
    epochs : int, default 200
        Passes over the rows.
    batch_size : int, optional
        Rows of a step; the default is ``min(n, 1000)``.
    random_state : int, default 0
        Seed; on the CPU the same seed gives the same estimate.
    validation_fraction : float, default 0
        Share of the rows that is held out to stop early; 0, as in the paper, never stops early.
    device : str, default "cpu"
        Where the network is trained, in the words of torch.

    Notes
    -----
    Fitted on the data that f was trained on, h sees errors that are too small, and the estimate
    is biased low for models that can memorise; K* and L offset part of it. On held-out errors
    nothing needs offsetting: use ``objective="k", head="offset"`` there.

    "3-layer NN" is read as one hidden layer: only so the paper's Table 3 is reproduced. x and y are
    standardised by the fitted rows.

    References
    ----------
    A One-Step MSE Estimation of Models in Production, Eqs. 3, 8-11, 17, 18. Deviations: the
    positive part in Eq. 17, K* instead of K in Eq. 18, the indicator of Eq. 8 per minibatch, the
    offset head.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = X[:, 0] + rng.normal(scale=0.5, size=400)
    >>> check = OneStepCheckModel(objective="k", head="offset").fit(X, X[:, 0], y)
    >>> estimate = check.estimate(X[:100], X[:100, 0])
    >>> abs(estimate.mse - 0.25) < 0.1
    True
    """

    def __init__(
        self,
        objective: Objective = "l",
        head: Head = "plain",
        hidden: int = 64,
        learning_rate: float = 0.01,
        weight_decay: float = 1e-3,
        epochs: int = 200,
        batch_size: int | None = None,
        random_state: int = 0,
        *,
        validation_fraction: float = 0.0,
        device: str = "cpu",
    ) -> None:
        if objective not in get_args(Objective):
            rule = f"objective must be one of {sorted(get_args(Objective))}"
            raise InvalidInputError(rule, repr(objective), "Check the spelling.")
        check_one_of("head", head, ("plain", "offset"), "Check the spelling.")
        for name, value in (("hidden", hidden), ("epochs", epochs), ("batch_size", batch_size)):
            if value is not None and value < 1:
                raise InvalidInputError(f"{name} must be at least 1", str(value), "Raise it.")
        share = validation_fraction
        for holds, rule, given, fix in (
            (learning_rate > 0.0, "learning_rate must be positive", learning_rate, "Use 0.01."),
            (weight_decay >= 0.0, "weight_decay must not be negative", weight_decay, "Use 0.001."),
            (0.0 <= share < 1.0, "validation_fraction must be in [0, 1)", share, "Use 0.1."),
        ):
            if not holds:
                raise InvalidInputError(rule, str(given), fix)
        self.objective = objective
        self.head = head
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch_size = batch_size
        self.random_state = random_state
        self.validation_fraction = validation_fraction
        self.device = device
        self._encoder = FeatureEncoder()
        self._support: SupportCheck | None = None
        self._network: CheckNetwork | None = None
        self._center, self._spread = 0.0, 1.0

    def fit(self, X: Any, y_pred: Any, y_true: Any) -> Self:
        """Train h.

        Parameters
        ----------
        X : array-like of shape (n, d) or data frame
            Features: numbers, categories, missing values and dates.
        y_pred : array-like of shape (n,)
            Predictions of the monitored model f.
        y_true : array-like of shape (n,)
            Labels.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            If shapes differ or a prediction or label is not finite.
        """
        require_one_order({"X": X, "y_pred": y_pred, "y_true": y_true})
        x = self._encoder.fit(X).transform(X)
        y_pred = finite_vector("y_pred", y_pred, len(x))
        y_true = finite_vector("y_true", y_true, len(x))
        self._support = SupportCheck().fit(x, random_state=self.random_state)
        return self.fit_encoded(x, y_pred, y_true)

    def fit_encoded(self, x: FloatArray, y_pred: FloatArray, y_true: FloatArray) -> Self:
        """Train h on rows that are encoded already, without a support check of its own."""
        with needed_by("OneStepCheckModel.fit"):
            from trueup.monitoring.networks.check_network import fit_check_network
            from trueup.monitoring.networks.training import TrainingPlan, as_tensor, seeded
        self._center, self._spread = float(y_true.mean()), spread_of(y_true)
        rows = (x, self._scaled(y_pred), self._scaled(y_true))
        columns = [as_tensor(one[None], self.device) for one in rows]
        self._network = fit_check_network(
            columns,
            seeded(self.random_state, self.device),
            objective=self.objective,
            head=self.head,
            hidden=self.hidden,
            plan=TrainingPlan(
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                epochs=self.epochs,
                batch_size=min(len(x), self.batch_size or DEFAULT_BATCH),
                validation_fraction=self.validation_fraction,
            ),
        )
        return self

    def squared_errors(self, x: FloatArray, y_pred: FloatArray) -> FloatArray:
        """Return the estimated squared error of each encoded row, shape (n,)."""
        scaled = np.clip(self._scaled(y_pred), -FAR, FAR)
        rows = _fitted(self._network).squared_errors(x[None], scaled[None])[0]
        return np.asarray(rows * self._spread**2)

    def estimate(self, X: Any, y_pred: Any) -> MSEEstimate:
        """Return the estimated mean squared error of f on X.

        Parameters
        ----------
        X : array-like of shape (m, d) or data frame
            Features of the operational rows.
        y_pred : array-like of shape (m,)
            Predictions of f for them.

        Returns
        -------
        MSEEstimate
            Its interval covers the sampling of these rows only, not the error of h: the paper gives
            no other. :class:`ConsensusEstimator` gives an interval for the whole.

        Raises
        ------
        NotFittedError
            If ``fit`` was not called.
        """
        batch, seed = Batch(self._encoder, X, y_pred), self.random_state
        found = _fitted(self._support).judge(batch.sample(SUPPORT_ROWS, seed), seed)
        rows = batch.rows({"errors": self.squared_errors})["errors"]
        mse = float(rows.mean())
        low, high = log_interval(mse, batch_sampling_variance(rows))
        far = self.far_reasons(batch)
        return MSEEstimate(
            mse=mse,
            low=low,
            high=high,
            members={f"one_step_{self.objective}": mse},
            trusted=found.trusted and not far,
            reasons=(*found.reasons, *far, *batch.novelties()),
            n=len(batch),
            diagnostics=found.diagnostics,
        ).checked()

    def mean_error(self, X: Any, y_pred: Any) -> float:
        """Return the ``mse`` of :meth:`estimate` alone: whether to trust it is not judged."""
        rows = Batch(self._encoder, X, y_pred).rows({"errors": self.squared_errors})
        return float(rows["errors"].mean())

    def far_reasons(self, batch: Batch) -> tuple[str, ...]:
        """Return the numbers that were cut at a million standard deviations, in words."""
        columns = [f"column {name!r}" for name in batch.far_columns()]
        if (np.abs(self._scaled(batch.y_pred)) > FAR).any():
            columns.append("the prediction")
        return tuple(
            f"{name} has numbers more than {FAR:,.0f} standard deviations away from the reference"
            for name in columns
        )

    def save(self, path: str | Path) -> None:
        """Write the fitted check model to ``path`` as an ``.npz`` file without pickles."""
        write(path, type(self).__name__, self._all_arrays())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the check model that ``save`` wrote.

        Raises
        ------
        CorruptFileError
            If the file holds something else, is damaged or forged; it is an InvalidInputError.
        """
        return read(path, cls.__name__, cls._restored)

    @classmethod
    def _restored(cls, arrays: Arrays) -> Self:
        model = cls.from_arrays(arrays)
        model._encoder = FeatureEncoder.from_arrays(unnest("encoder", arrays))
        model._support = SupportCheck.from_arrays(unnest("support", arrays))
        require_width(model._encoder.width, model._support.width, model.width)
        require_same_names(arrays, model._all_arrays())
        return model

    def _all_arrays(self) -> Arrays:
        arrays = self.to_arrays() | nest("encoder", self._encoder.to_arrays())
        return arrays | nest("support", _fitted(self._support).to_arrays())

    @property
    def width(self) -> int:
        """Number of encoded features that the fitted network takes."""
        return _fitted(self._network).network.width - (self.head == "offset")

    def to_arrays(self) -> Arrays:
        """Return settings, scale and weights of the network."""
        network = _fitted(self._network).network
        settings = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        scale = np.array([self._center, self._spread])
        return nest("network", network.to_arrays()) | {"settings": text(settings), "scale": scale}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the network that ``to_arrays`` described; it takes encoded rows."""
        model = cls(**untext(arrays["settings"]))
        network = FittedMLP.from_arrays(unnest("network", arrays))
        model._network = CheckNetwork(network, model.head)
        model._center, model._spread = (float(v) for v in finite(arrays["scale"], 1))
        return model

    def _scaled(self, values: FloatArray) -> FloatArray:
        return (values - self._center) / self._spread


def _fitted(part: Part | None) -> Part:
    if part is None:
        raise NotFittedError("check model must be fitted", "no fit", "Call fit first.")
    return part
