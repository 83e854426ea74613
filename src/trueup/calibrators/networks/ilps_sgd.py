"""The paper's fit of ILPS: gradient descent with a soft penalty on violations of the order."""

from __future__ import annotations

import numpy as np

from trueup.calibrators.line_plot import RowsAtKnots
from trueup.calibrators.probabilities import FloatArray
from trueup.extras import needed_by

with needed_by("This calibrator"):
    import torch


def descend_line_plot(
    rows: RowsAtKnots,
    y: FloatArray,
    weight: FloatArray,
    knots: FloatArray,
    *,
    penalty: float,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> FloatArray:
    """Minimise Eq. 11 with Adam, starting from the identity.

    Returns
    -------
    array of shape (m,)
        The heights; they may violate the order a little.
    """
    piece = torch.from_numpy(rows.piece)
    position, fixed, label, share = (
        torch.from_numpy(array) for array in (rows.position, rows.fixed, y, weight / weight.mean())
    )
    heights = torch.tensor(knots, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([heights], lr=learning_rate)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(len(y), generator=generator), batch_size):
            left = piece[batch]
            step = heights.diff()
            eta = heights[left] + position[batch] * step[left] + fixed[batch]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                eta, label[batch], weight=share[batch]
            )
            loss = loss + penalty * torch.relu(-step).sum()
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
    return np.asarray(heights.detach().numpy())
