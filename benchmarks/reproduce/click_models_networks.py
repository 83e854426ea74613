"""The papers' click models, for many seeds at once.

FNN, DeepFM, xDeepFM, DCN and DCNMix are what deepctr-torch computes, DLRM is Meta's; only the
initial weights differ (torch's defaults in the perceptrons, 0.02 in the embeddings), because an
epoch here is a thousand times shorter than one on the papers' data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from click_models_layers import (
    CompressedInteraction,
    Cross,
    Draws,
    Embedding,
    Linear,
    MixedCross,
    Perceptron,
)
from torch import Tensor, nn

EMBEDDING_STD = 0.02
CROSS_LAYERS, RANK, EXPERTS = 2, 8, 4


@dataclass(frozen=True)
class Design:
    """Everything about a network that is fixed before its seed is drawn.

    Attributes
    ----------
    architecture : str
        A key of NETWORKS.
    embedding : int
        Numbers of an embedding vector.
    widths : tuple of int
        Hidden layers of the perceptron; DLRM: of the one on top.
    maps : tuple of int
        Feature maps of xDeepFM's interaction layers.
    bottom : tuple of int
        Hidden layers of DLRM's perceptron of the numbers.
    batch_norm : bool
        Whether the perceptron normalises its hidden layers.
    dropout : float
        Share of hidden units that is dropped in training.
    """

    architecture: str
    embedding: int = 8
    widths: tuple[int, ...] = (64, 64)
    maps: tuple[int, ...] = (16, 16)
    bottom: tuple[int, ...] = (32,)
    batch_norm: bool = False
    dropout: float = 0.0


@dataclass(frozen=True)
class Embedded:
    """A batch after the embedding.

    Attributes
    ----------
    fields : tensor (S, B, F, k)
        The vectors of the fields.
    flat : tensor (S, B, n_inputs)
        The same side by side, and the numbers.
    """

    fields: Tensor
    flat: Tensor


class Network(nn.Module):
    """A perceptron of the embedded fields and the numbers; ``forward`` gives logits (S, B).

    Parameters
    ----------
    design : Design
        What to build.
    n_levels : tuple of int
        Levels of each field.
    n_numbers : int
        Numeric columns.
    draws : Draws
        Source of the initial weights.
    """

    def __init__(
        self, design: Design, n_levels: tuple[int, ...], n_numbers: int, draws: Draws
    ) -> None:
        super().__init__()
        self.n_levels, self.n_numbers = n_levels, n_numbers
        self.n_inputs = len(n_levels) * design.embedding + n_numbers
        self.embedding = Embedding(draws, n_levels, design.embedding, self.embedding_std())
        self.bias = draws.zeros(1)
        self.build(design, draws)

    def embedding_std(self) -> float:
        """Return the standard deviation of the initial embeddings."""
        return EMBEDDING_STD

    def build(self, design: Design, draws: Draws) -> None:
        """Make what the architecture adds to the embedding."""
        self.perceptron = Perceptron(
            draws,
            self.n_inputs,
            design.widths,
            batch_norm=design.batch_norm,
            dropout=design.dropout,
        )
        self.output = Linear(draws, design.widths[-1], 1, bias=False)

    def tables(self) -> list[nn.Parameter]:
        """Return the weights that L2 regularization acts on, as in deepctr."""
        return [self.embedding.weight]

    def embed(self, codes: Tensor, numbers: Tensor) -> Embedded:
        """Look up the vectors of codes (S, B, F) and set the numbers (S, B, n) beside them."""
        fields = self.embedding(codes)
        return Embedded(fields, torch.cat([fields.flatten(2), numbers], 2))

    def forward(self, codes: Tensor, numbers: Tensor) -> Tensor:
        return self.deep(self.embed(codes, numbers)).squeeze(2) + self.bias

    def deep(self, x: Embedded) -> Tensor:
        """Return the part of the logit that is no first-order term, (S, B, 1)."""
        return self.output(self.perceptron(x.flat))


class Fnn(Network):
    """A first-order term beside the perceptron."""

    def build(self, design: Design, draws: Draws) -> None:
        super().build(design, draws)
        self.first_order = Embedding(draws, self.n_levels, 1, 0.0)
        self.first_order_numbers = draws.zeros(self.n_numbers, 1)

    def tables(self) -> list[nn.Parameter]:
        return [*super().tables(), self.first_order.weight]

    def forward(self, codes: Tensor, numbers: Tensor) -> Tensor:
        first_order = self.first_order(codes).sum((2, 3))
        first_order = first_order + torch.bmm(numbers, self.first_order_numbers).squeeze(2)
        return first_order + super().forward(codes, numbers)


class DeepFm(Fnn):
    """FNN and the sum of the inner products of all pairs of fields."""

    def deep(self, x: Embedded) -> Tensor:
        total = x.fields.sum(2)
        pairs = 0.5 * (total * total - (x.fields * x.fields).sum(2)).sum(2, keepdim=True)
        return super().deep(x) + pairs


class XDeepFm(Fnn):
    """FNN and a compressed interaction network."""

    def build(self, design: Design, draws: Draws) -> None:
        super().build(design, draws)
        self.interaction = CompressedInteraction(draws, len(self.n_levels), design.maps)
        self.interaction_output = Linear(draws, self.interaction.n_out, 1, bias=False)

    def deep(self, x: Embedded) -> Tensor:
        return super().deep(x) + self.interaction_output(self.interaction(x.fields))


class Dcn(Fnn):
    """A cross network beside the perceptron."""

    def build(self, design: Design, draws: Draws) -> None:
        super().build(design, draws)
        self.cross = self.cross_network(draws)
        self.output = Linear(draws, self.n_inputs + design.widths[-1], 1, bias=False)

    def cross_network(self, draws: Draws) -> nn.Module:
        """Return the layers that cross the inputs."""
        return Cross(draws, self.n_inputs, CROSS_LAYERS)

    def deep(self, x: Embedded) -> Tensor:
        return self.output(torch.cat([self.cross(x.flat), self.perceptron(x.flat)], 2))


class DcnMix(Dcn):
    """DCN with mixtures of low-rank cross layers."""

    def cross_network(self, draws: Draws) -> nn.Module:
        return MixedCross(draws, self.n_inputs, CROSS_LAYERS, RANK, EXPERTS)


class Dlrm(Network):
    """Inner products of all pairs of fields and of the transformed numbers, then a perceptron."""

    def embedding_std(self) -> float:
        # Meta draws each table from +-sqrt(1 / levels); this is its deviation at the mean size.
        return math.sqrt(len(self.n_levels) / sum(self.n_levels) / 3.0)

    def build(self, design: Design, draws: Draws) -> None:
        n_vectors = len(self.n_levels) + (self.n_numbers > 0)
        n_inputs = n_vectors * (n_vectors - 1) // 2 + design.embedding * (self.n_numbers > 0)
        self.bottom = Perceptron(draws, self.n_numbers, (*design.bottom, design.embedding))
        self.perceptron = Perceptron(draws, n_inputs, design.widths)
        self.output = Linear(draws, design.widths[-1], 1, bias=False)
        rows, columns = torch.tril_indices(n_vectors, n_vectors, -1)
        self.register_buffer("pairs", rows * n_vectors + columns)

    def forward(self, codes: Tensor, numbers: Tensor) -> Tensor:
        vectors, parts = self.embedding(codes), []
        if self.n_numbers:
            parts.append(self.bottom(numbers))
            vectors = torch.cat([parts[0].unsqueeze(2), vectors], 2)
        products = vectors @ vectors.transpose(2, 3)
        parts.append(products.flatten(2)[:, :, self.pairs])
        return self.output(self.perceptron(torch.cat(parts, 2))).squeeze(2) + self.bias


NETWORKS: dict[str, type[Network]] = {
    "MLP": Network,
    "FNN": Fnn,
    "DeepFM": DeepFm,
    "xDeepFM": XDeepFm,
    "DCN": Dcn,
    "DCNMix": DcnMix,
    "DLRM": Dlrm,
}
"""Each architecture's class; MLP is the plain perceptron of the embeddings."""


def build_network(
    design: Design, n_levels: tuple[int, ...], n_numbers: int, draws: Draws
) -> Network:
    """Return the untrained networks of all seeds."""
    return NETWORKS[design.architecture](design, n_levels, n_numbers, draws)
