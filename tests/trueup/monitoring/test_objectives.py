import pytest
import torch

from trueup.monitoring.baselines.two_step import gaussian_nll
from trueup.monitoring.networks import check_network as objectives


def test_a_row_by_hand():
    h, f, y = torch.tensor([[1.0]]), torch.tensor([[2.0]]), torch.tensor([[5.0]])
    # e = (5 - 2)^2 - 2 (1 - 2)^2 = 7
    assert objectives.k(h, f, y).item() == pytest.approx(49.0)
    assert objectives.k_star(h, f, y).item() == pytest.approx(49.0)
    assert objectives.one_sided(h, f, y).item() == 0.0
    above = torch.tensor([[3.0]])  # e = 9 - 2, R = 9 (1 + 0.001)^2
    assert objectives.one_sided(above, f, y).item() == pytest.approx(9.0 * 1.001**2, rel=1e-5)
    assert objectives.l(above, f, y).item() == pytest.approx(49.0 + 900.0 * 1.001**2, rel=1e-5)


def draw(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, 4, 50, generator=generator).double().requires_grad_()


@pytest.mark.parametrize("seed", range(5))
def test_k_star_and_its_gradient_equal_the_indicator_of_equation_8(seed):
    h, f, y = draw(seed)
    e = objectives.row_error(h, f, y)
    plus, minus = e.clamp(min=0).square().mean(-1), (-e).clamp(min=0).square().mean(-1)
    upper = (plus >= minus)[:, None]
    s = ((e >= 0) & upper) | ((e < 0) & ~upper)
    twin = (s.detach() * e.square()).mean(-1)
    value = objectives.k_star(h, f, y)
    torch.testing.assert_close(value, twin)
    (gradient,) = torch.autograd.grad(value.sum(), h, retain_graph=True)
    (expected,) = torch.autograd.grad(twin.sum(), h)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_theorem_2(seed):
    h, f, y = draw(seed)
    squared = objectives.row_error(h, f, y).mean(-1).square()
    k, k_star = objectives.k(h, f, y), objectives.k_star(h, f, y)
    assert (squared <= k_star).all()
    assert (k_star <= k).all()
    assert (k <= 2 * k_star).all()


def test_gaussian_likelihood_equals_torch():
    mean, log_variance, y = draw(1)
    normal = torch.distributions.Normal(mean, (log_variance / 2).exp())
    expected = -normal.log_prob(y).mean(-1) - 0.5 * torch.log(torch.tensor(2 * torch.pi))
    torch.testing.assert_close(gaussian_nll(mean, log_variance, y), expected)
