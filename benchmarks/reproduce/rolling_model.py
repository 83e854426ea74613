"""An LSTM that is retrained every few months on the rows that have come in since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from rolling_data import FloatArray, IntArray, Series
from torch import nn


@dataclass(frozen=True)
class Pipeline:
    """Everything that leads from a seed to predictions.

    Attributes
    ----------
    epochs : int
        Passes over the training months, and over the new ones at each retraining.
    penalty : float
        Weight of the squared parameters in the gradient.
    decay : bool
        Whether the learning rate falls linearly to 0 within each training, else it is constant.
    retrain_every : int
        Months between two trainings.
    """

    hidden: int = 16
    layers: int = 1
    batch_size: int = 256
    epochs: int = 5
    penalty: float = 0.0
    decay: bool = False
    retrain_every: int = 6
    learning_rate: float = 0.003


class Forecaster(nn.Module):
    """An LSTM whose last state gives one number."""

    def __init__(self, n_features: int, pipeline: Pipeline) -> None:
        super().__init__()
        self.lstm = nn.LSTM(n_features, pipeline.hidden, pipeline.layers, batch_first=True)
        self.head = nn.Linear(pipeline.hidden, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(x)
        return self.head(states[:, -1])[:, 0]


def trainings(series: Series, retrain_every: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield for each model the rows it is trained on, and the later rows that it predicts.

    The first model sees all months before ``series.first``; each later one goes on from the model
    before it with the months that have come in since.
    """
    months = series.months
    train = np.flatnonzero(months < series.first)
    to_come = np.unique(months[months >= series.first])
    for start in range(0, len(to_come), retrain_every):
        predicted = np.flatnonzero(np.isin(months, to_come[start : start + retrain_every]))
        yield train, predicted
        train = predicted


def rolling_predictions(series: Series, pipeline: Pipeline, seed: int) -> NDArray[np.float64]:
    """Predict each validation row by a model that was trained on earlier months only.

    The seed draws the first weights and the order of the rows.

    Returns
    -------
    array of shape (n_validation,)
        Predictions in the order of time.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Forecaster(series.x.shape[2], pipeline)
    order = np.random.default_rng(seed)
    predictions = []
    for train, predicted in trainings(series, pipeline.retrain_every):
        fit(model, series.x[train], series.y[train], pipeline, order)
        with torch.no_grad():
            predictions.append(model(torch.from_numpy(series.x[predicted])).numpy())
    return np.concatenate(predictions).astype(np.float64)


def fit(
    model: Forecaster, x: FloatArray, y: FloatArray, pipeline: Pipeline, order: np.random.Generator
) -> None:
    """Minimise the squared error by Adam over ``pipeline.epochs`` passes."""
    optimizer = torch.optim.Adam(
        model.parameters(), lr=pipeline.learning_rate, weight_decay=pipeline.penalty, fused=True
    )
    batches = -(-len(y) // pipeline.batch_size)
    n_steps, step = batches * pipeline.epochs, 0
    for _ in range(pipeline.epochs):
        for rows in np.array_split(order.permutation(len(y)), batches):
            if pipeline.decay:
                optimizer.param_groups[0]["lr"] = pipeline.learning_rate * (1.0 - step / n_steps)
            optimizer.zero_grad()
            error = model(torch.from_numpy(x[rows])) - torch.from_numpy(y[rows])
            error.square().mean().backward()
            optimizer.step()
            step += 1
