"""Layers that hold the weights of many seeds at once: the first axis is the seed.

One pass through them trains all seeds of a pipeline together, in batched matrix products. What a
seed draws depends on that seed alone, so a model is the same whatever it is trained together with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Draws:
    """Random numbers of each seed from a generator of its own.

    Parameters
    ----------
    seeds : sequence of int
        Seeds of training.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int, std: float) -> nn.Parameter:
        """Draw a parameter of shape (n_seeds, *shape)."""
        drawn = [torch.randn(shape, generator=generator) for generator in self.generators]
        return nn.Parameter(std * torch.stack(drawn))

    def uniform(self, *shape: int, bound: float) -> nn.Parameter:
        """Draw a parameter of shape (n_seeds, *shape) from [-bound, bound]."""
        return nn.Parameter(bound * (2.0 * self.numbers(*shape) - 1.0))

    def zeros(self, *shape: int) -> nn.Parameter:
        """Return a parameter of zeros of shape (n_seeds, *shape)."""
        return nn.Parameter(torch.zeros(len(self), *shape))

    def numbers(self, *shape: int) -> Tensor:
        """Draw numbers in [0, 1) of shape (n_seeds, *shape)."""
        return torch.stack([torch.rand(shape, generator=g) for g in self.generators])


class Embedding(nn.Module):
    """One vector per level of each field; codes (S, B, F) become vectors (S, B, F, width).

    Parameters
    ----------
    draws : Draws
        Source of the initial weights.
    n_levels : sequence of int
        Levels of each field.
    width : int
        Numbers of a vector.
    std : float
        Standard deviation of the initial weights.
    """

    def __init__(self, draws: Draws, n_levels: Sequence[int], width: int, std: float) -> None:
        super().__init__()
        total = sum(n_levels)
        self.weight = nn.Parameter(draws.normal(total, width, std=std).detach().flatten(0, 1))
        first = torch.tensor([sum(n_levels[:i]) for i in range(len(n_levels))])
        self.register_buffer("offset", first + total * torch.arange(len(draws))[:, None, None])

    def forward(self, codes: Tensor) -> Tensor:
        return nn.functional.embedding(codes + self.offset, self.weight)


class Linear(nn.Module):
    """An affine map (S, B, n_in) -> (S, B, n_out), initialised as torch's own."""

    def __init__(self, draws: Draws, n_in: int, n_out: int, *, bias: bool = True) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(n_in, 1))
        self.weight = draws.uniform(n_in, n_out, bound=bound)
        self.bias = draws.uniform(1, n_out, bound=bound) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if self.bias is None:
            return torch.bmm(x, self.weight)
        return torch.baddbmm(self.bias, x, self.weight)


class BatchNorm(nn.Module):
    """Normalise each unit over the batch of its own seed; running moments in evaluation."""

    momentum = 0.1
    epsilon = 1e-5

    def __init__(self, draws: Draws, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(len(draws), 1, width))
        self.shift = draws.zeros(1, width)
        self.register_buffer("mean", torch.zeros(len(draws), 1, width))
        self.register_buffer("variance", torch.ones(len(draws), 1, width))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return self._normalised(x, self.mean, self.variance)
        variance, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        unbiased = variance.detach() * x.shape[1] / max(x.shape[1] - 1, 1)
        self.mean.lerp_(mean.detach(), self.momentum)
        self.variance.lerp_(unbiased, self.momentum)
        return self._normalised(x, mean, variance)

    def _normalised(self, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        return (x - mean) * (variance + self.epsilon).rsqrt() * self.scale + self.shift


class Dropout(nn.Module):
    """Zero units with probability ``rate`` while training, by the generator of each seed."""

    def __init__(self, draws: Draws, rate: float) -> None:
        super().__init__()
        self.draws, self.rate = draws, rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = self.draws.numbers(*x.shape[1:]) >= self.rate
        return x * kept / (1.0 - self.rate)


class Perceptron(nn.Sequential):
    """Hidden layers: affine, batch norm if wanted, ReLU, dropout if wanted."""

    def __init__(
        self,
        draws: Draws,
        n_in: int,
        widths: Sequence[int],
        *,
        batch_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        layers: list[nn.Module] = []
        for before, width in zip([n_in, *widths], widths, strict=False):
            layers.append(Linear(draws, before, width))
            if batch_norm:
                layers.append(BatchNorm(draws, width))
            layers.append(nn.ReLU())
            if dropout:
                layers.append(Dropout(draws, dropout))
        super().__init__(*layers)


class CompressedInteraction(nn.Module):
    """Products of fields, compressed layer by layer (xDeepFM); half of a layer goes on."""

    def __init__(self, draws: Draws, n_fields: int, widths: Sequence[int]) -> None:
        super().__init__()
        inputs = [n_fields, *(width // 2 for width in widths[:-1])]
        self.maps = nn.ModuleList(
            Linear(draws, n * n_fields, width) for n, width in zip(inputs, widths, strict=True)
        )
        self.n_out = sum(width // 2 for width in widths[:-1]) + widths[-1]

    def forward(self, embedded: Tensor) -> Tensor:
        # The rows last: products of few fields are slow where they are the innermost axis.
        first = hidden = embedded.permute(0, 3, 2, 1).contiguous()
        results = []
        for i, layer in enumerate(self.maps):
            products = (hidden.unsqueeze(3) * first.unsqueeze(2)).flatten(2, 3)
            found = layer.weight.mT.unsqueeze(1) @ products + layer.bias.mT.unsqueeze(1)
            found = torch.relu(found)
            if i < len(self.maps) - 1:
                hidden, found = found.chunk(2, dim=2)
            results.append(found.sum(1))
        return torch.cat(results, 1).mT


class Cross(nn.Module):
    """Layers x0 (x . w) + b + x of the deep and cross network."""

    def __init__(self, draws: Draws, width: int, n_layers: int) -> None:
        super().__init__()
        std = math.sqrt(2.0 / (width + 1))
        self.kernels = nn.ParameterList(draws.normal(width, 1, std=std) for _ in range(n_layers))
        self.biases = nn.ParameterList(draws.zeros(1, width) for _ in range(n_layers))

    def forward(self, x: Tensor) -> Tensor:
        first = x
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            x = first * torch.bmm(x, kernel) + bias + x
        return x


class MixedCross(nn.Module):
    """Cross layers of low rank, a mixture of experts in each (DCN-Mix)."""

    def __init__(self, draws: Draws, width: int, n_layers: int, rank: int, n_experts: int) -> None:
        super().__init__()
        outer, inner = math.sqrt(2.0 / (width + rank)), math.sqrt(1.0 / rank)

        def weights(*shape: int, std: float) -> nn.ParameterList:
            drawn = (draws.normal(n_experts, *shape, std=std) for _ in range(n_layers))
            return nn.ParameterList(drawn)

        self.down = weights(width, rank, std=outer)
        self.turn = weights(rank, rank, std=inner)
        self.up = weights(rank, width, std=outer)
        self.biases = nn.ParameterList(draws.zeros(1, 1, width) for _ in range(n_layers))
        self.gate = Linear(draws, width, n_experts, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        first = x.unsqueeze(1)
        parts = zip(self.down, self.turn, self.up, self.biases, strict=True)
        for down, turn, up, bias in parts:
            low = torch.tanh(torch.tanh(x.unsqueeze(1) @ down) @ turn)
            experts = first * (low @ up + bias)
            share = self.gate(x).softmax(2).transpose(1, 2).unsqueeze(3)
            x = (experts * share).sum(1) + x
        return x
