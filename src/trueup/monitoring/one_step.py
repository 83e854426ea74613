"""The one-step check model ("One-step MSE estimation of models in production")."""

from __future__ import annotations

from typing import Any, Self, get_args

import numpy as np

from trueup.arguments import check_one_of, whole_number
from trueup.arrays import Arrays
from trueup.errors import InvalidInputError
from trueup.extras import needed_by
from trueup.monitoring.estimator import Estimator
from trueup.monitoring.features import Batch
from trueup.monitoring.inputs import FAR, FloatArray, spread_of
from trueup.monitoring.networks.fitted import CheckNetwork, FittedMLP, Head, Objective
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.storage import finite, nest, text, unnest, untext
from trueup.monitoring.trust.interval import batch_sampling_variance, log_interval

DEFAULT_BATCH = 1_000


class OneStepCheckModel(Estimator):
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

    what = "check model"

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
        check_one_of("objective", objective, sorted(get_args(Objective)), "Check the spelling.")
        check_one_of("head", head, ("plain", "offset"), "Check the spelling.")
        for name, value in (("hidden", hidden), ("epochs", epochs), ("batch_size", batch_size)):
            if value is not None:
                whole_number(name, value, 1, "Raise it.")
        share = validation_fraction
        for holds, rule, given, fix in (
            (learning_rate > 0.0, "learning_rate must be positive", learning_rate, "Use 0.01."),
            (weight_decay >= 0.0, "weight_decay must not be negative", weight_decay, "Use 0.001."),
            (0.0 <= share < 1.0, "validation_fraction must be in [0, 1)", share, "Use 0.1."),
        ):
            if not holds:
                raise InvalidInputError(rule, str(given), fix)
        super().__init__()
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
        self._network: CheckNetwork | None = None
        self._center, self._spread = 0.0, 1.0

    def _fit(self, X: Any, x: FloatArray, y_pred: FloatArray, y_true: FloatArray) -> None:  # noqa: ARG002
        self.fit_encoded(x, y_pred, y_true)

    def fit_encoded(self, x: FloatArray, y_pred: FloatArray, y_true: FloatArray) -> Self:
        """Train h on rows that are encoded already, without a support check of its own."""
        with needed_by("OneStepCheckModel.fit"):
            from trueup.monitoring.networks.check_network import fit_check_network
            from trueup.monitoring.networks.training import TrainingPlan, as_tensor, seeded
        self._center, self._spread = float(y_true.mean()), spread_of(y_true)
        columns = (
            as_tensor(x[None], self.device),
            as_tensor(self._scaled(y_pred)[None], self.device),
            as_tensor(self._scaled(y_true)[None], self.device),
        )
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
        rows = self._fitted(self._network).squared_errors(x[None], scaled[None])[0]
        return np.asarray(rows * self._spread**2)

    def _estimate(self, batch: Batch) -> tuple[MSEEstimate, tuple[str, ...]]:
        rows = batch.rows({"errors": self.squared_errors})["errors"]
        mse = float(rows.mean())
        low, high = log_interval(mse, batch_sampling_variance(rows))
        members = {f"one_step_{self.objective}": mse}
        found = MSEEstimate(mse, low, high, members, trusted=True, reasons=(), n=len(batch))
        return found, self.far_reasons(batch)

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

    def widths(self) -> list[int]:
        return [self._fitted(self._network).network.width - (self.head == "offset")]

    def to_arrays(self) -> Arrays:
        network = self._fitted(self._network).network
        settings = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        scale = np.array([self._center, self._spread])
        return nest("network", network.to_arrays()) | {"settings": text(settings), "scale": scale}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        model = cls(**untext(arrays["settings"]))
        network = FittedMLP.from_arrays(unnest("network", arrays))
        model._network = CheckNetwork(network, model.head)
        model._center, model._spread = (float(v) for v in finite(arrays["scale"], 1))
        return model

    def _scaled(self, values: FloatArray) -> FloatArray:
        return (values - self._center) / self._spread
