"""What the estimators of an operational error share: reading, support, the verdict, a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from trueup.arrays import Arrays
from trueup.errors import NotFittedError
from trueup.monitoring.features import Batch, FeatureEncoder
from trueup.monitoring.inputs import FloatArray, finite_vector
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.storage import nest, read, require_same_names, require_width, unnest, write
from trueup.monitoring.trust.support import SUPPORT_ROWS, SupportCheck
from trueup.read.frames import require_one_order

Part = TypeVar("Part")


class Estimator(ABC):
    """An estimator with the encoder and the support of its reference."""

    random_state: int
    what: str
    """Its name in messages."""

    def __init__(self) -> None:
        self._encoder = FeatureEncoder()
        self._support: SupportCheck | None = None

    def fit(self, X: Any, y_pred: Any, y_true: Any) -> Self:
        """Fit on labelled rows.

        Parameters
        ----------
        X : array-like of shape (n, d) or data frame
            Features: numbers, categories, missing values and dates.
        y_pred : array-like of shape (n,)
            Predictions of the monitored model; probabilities if the labels are 0 and 1.
        y_true : array-like of shape (n,)
            Labels.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            If shapes differ, values are not finite, or there are too few rows: the consensus needs
            30.
        """
        require_one_order({"X": X, "y_pred": y_pred, "y_true": y_true})
        x = self._encoder.fit(X).transform(X)
        y_pred = finite_vector("y_pred", y_pred, len(x))
        y_true = finite_vector("y_true", y_true, len(x))
        self._support = SupportCheck.fitted(x, self.random_state)
        self._fit(X, x, y_pred, y_true)
        return self

    def estimate(self, X: Any, y_pred: Any) -> MSEEstimate:
        """Return the estimated mean squared error of the model on X.

        Parameters
        ----------
        X : array-like of shape (m, d) or data frame
            Features of the operational rows, with the columns of the reference.
        y_pred : array-like of shape (m,)
            Predictions of the model for them.

        Returns
        -------
        MSEEstimate
            With ``trusted=False`` where the rows lie outside of the reference, or where only
            training errors were known. The interval of a single check model covers the sampling of
            these rows only, not the error of h: the paper gives no other. The consensus gives an
            interval for the whole.

        Raises
        ------
        NotFittedError
            If ``fit`` was not called.
        InvalidInputError
            If the columns differ from those of the reference.
        """
        support = self._fitted(self._support)
        batch = Batch(self._encoder, X, y_pred)
        found, far = self._estimate(batch)
        rows = batch.sample(SUPPORT_ROWS, self.random_state)
        judged = support.judge(rows, self.random_state)
        return replace(
            found,
            trusted=found.trusted and judged.trusted and not far,
            reasons=(*judged.reasons, *far, *found.reasons, *batch.novelties()),
            diagnostics={**judged.diagnostics, **found.diagnostics},
        ).checked()

    def save(self, path: str | Path) -> None:
        """Write the fitted state, without the monitored model, as ``.npz`` without pickles."""
        write(path, type(self).__name__, self._all_arrays())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the estimator that ``save`` wrote; its estimates are the same.

        Raises
        ------
        CorruptFileError
            If the file holds something else, is damaged or forged; it is an InvalidInputError.
        """
        return read(path, cls.__name__, cls._restored)

    @abstractmethod
    def _fit(self, X: Any, x: FloatArray, y_pred: FloatArray, y_true: FloatArray) -> None:
        """Fit on features as they came, which a model can be refitted on, and on encoded ones."""

    @abstractmethod
    def _estimate(self, batch: Batch) -> tuple[MSEEstimate, tuple[str, ...]]:
        """Return the estimate before support is looked at, and the numbers that were cut."""

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """Return the fitted state that an estimator has of its own."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the estimator that ``to_arrays`` described; it takes encoded rows."""

    @abstractmethod
    def widths(self) -> list[int]:
        """Return how many encoded features each of its parts takes."""

    def _fitted(self, part: Part | None) -> Part:
        if part is None:
            raise NotFittedError(f"{self.what} must be fitted", "no fit", "Call fit first.")
        return part

    def _all_arrays(self) -> Arrays:
        support = self._fitted(self._support).to_arrays()
        encoder = nest("encoder", self._encoder.to_arrays())
        return self.to_arrays() | encoder | nest("support", support)

    @classmethod
    def _restored(cls, arrays: Arrays) -> Self:
        loaded = cls.from_arrays(arrays)
        loaded._encoder = FeatureEncoder.from_arrays(unnest("encoder", arrays))
        loaded._support = SupportCheck.from_arrays(unnest("support", arrays))
        require_width(loaded._encoder.width, loaded._support.rows.shape[1], *loaded.widths())
        require_same_names(arrays, loaded._all_arrays())
        return loaded
