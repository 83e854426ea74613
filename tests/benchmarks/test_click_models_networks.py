"""The click models against deepctr-torch, against plain loops, and seed by seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

LEVELS, N_NUMBERS = (7, 5, 3), 2


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    codes = torch.stack([torch.randint(0, v, (1, 11), generator=generator) for v in LEVELS], 2)
    return codes, torch.randn(1, 11, N_NUMBERS, generator=generator)


@pytest.fixture
def network(click):
    """Return the network of one seed, its weights moved away from their zeros."""

    def build(architecture, n_numbers=N_NUMBERS, **design):
        design = click.networks.Design(architecture, embedding=4, widths=(6, 5), **design)
        net = click.networks.build_network(design, LEVELS, n_numbers, click.layers.Draws([3]))
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape))
        return net

    return build


@pytest.fixture(scope="module")
def models():
    def refuse(*_, **__):
        raise ConnectionError("tests use no network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("requests.get", refuse)  # deepctr asks for its latest version when imported
        pytest.importorskip("deepctr_torch")
        from deepctr_torch import inputs, models

        def build(name, n_numbers=N_NUMBERS, **options):
            columns = [inputs.SparseFeat(f"C{i}", v, 4) for i, v in enumerate(LEVELS)]
            columns += [inputs.DenseFeat(f"I{i}", 1) for i in range(n_numbers)]
            return getattr(models, name)(columns, columns, dnn_hidden_units=(6, 5), **options)

        yield build


@torch.no_grad()
def copy_weights(ours, theirs):
    """Give the model of deepctr the weights of our network of one seed."""
    for table, embeddings in (
        (ours.embedding.weight, theirs.embedding_dict),
        (ours.first_order.weight, theirs.linear_model.embedding_dict),
    ):
        for i, part in enumerate(table.split(LEVELS)):
            embeddings[f"C{i}"].weight.copy_(part)
    if ours.n_numbers:
        theirs.linear_model.weight.copy_(ours.first_order_numbers[0])
    copy_linears([m for m in ours.perceptron if hasattr(m, "weight")], theirs.dnn.linears)
    copy_linears([ours.output], [theirs.dnn_linear])
    theirs.out.bias.copy_(ours.bias[0])


def copy_linears(ours, theirs):
    for own, other in zip(ours, theirs, strict=True):
        other.weight.copy_(own.weight[0].T.reshape(other.weight.shape))
        if own.bias is not None:
            other.bias.copy_(own.bias[0, 0])


@torch.no_grad()
def copy_interactions(ours, theirs):
    copy_linears(ours.interaction.maps, theirs.cin.conv1ds)
    copy_linears([ours.interaction_output], [theirs.cin_linear])


@torch.no_grad()
def copy_cross(ours, theirs):
    for i, (kernel, bias) in enumerate(zip(ours.cross.kernels, ours.cross.biases, strict=True)):
        theirs.crossnet.kernels[i].copy_(kernel[0])
        theirs.crossnet.bias[i].copy_(bias[0].T)


@torch.no_grad()
def copy_mixed_cross(ours, theirs):
    cross = ours.cross
    for i in range(len(cross.biases)):
        theirs.crossnet.V_list[i].copy_(cross.down[i][0])
        theirs.crossnet.C_list[i].copy_(cross.turn[i][0].transpose(1, 2))
        theirs.crossnet.U_list[i].copy_(cross.up[i][0].transpose(1, 2))
        theirs.crossnet.bias[i].copy_(cross.biases[i][0, 0].T)
    for expert, gate in enumerate(theirs.crossnet.gating):
        gate.weight.copy_(cross.gate.weight[0][:, expert][None])


def nothing(ours, theirs):
    """Copy nothing more: there is nothing beside the first order and the perceptron."""


@pytest.mark.parametrize(
    ("architecture", "theirs", "options", "copy_more"),
    [
        ("FNN", "DeepFM", {"use_fm": False}, nothing),
        ("DeepFM", "DeepFM", {}, nothing),
        ("xDeepFM", "xDeepFM", {"cin_layer_size": (16, 16)}, copy_interactions),
        ("DCN", "DCN", {}, copy_cross),
        ("DCNMix", "DCNMix", {"low_rank": 8, "num_experts": 4}, copy_mixed_cross),
    ],
)
def test_logits_equal_those_of_deepctr(
    network, models, batch, architecture, theirs, options, copy_more
):
    ours, other = network(architecture), models(theirs, **options)
    copy_weights(ours, other)
    copy_more(ours, other)
    codes, numbers = batch
    with torch.no_grad():
        expected = other(torch.cat([codes[0], numbers[0]], 1))[:, 0]
        assert torch.allclose(ours(codes, numbers)[0].sigmoid(), expected, atol=1e-6)


def test_training_equals_a_plain_loop_over_deepctr(click, models):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, v, 200) for v in LEVELS], 1)
    codes[0] = np.array(LEVELS) - 1
    data = click.data.ClickData(
        "made",
        codes,
        np.zeros((200, 0), np.float32),
        (rng.random(200) < 0.4).astype(np.float32),
        n_train=150,
        row_id=np.arange(200),
        bias_fraction=0.1,
        removed_field=0,
    )
    design = click.networks.Design("DeepFM", embedding=4, widths=(6, 5))
    pipeline = click.training.Pipeline("p", design, batch_size=40, learning_rate=0.01, l2=0.01)
    ours = click.training.train(pipeline, data, [5, 8], "decay")
    start = click.networks.build_network(design, LEVELS, 0, click.layers.Draws([8]))
    other = models("DeepFM", 0, l2_reg_linear=0.01, l2_reg_embedding=0.01)
    copy_weights(start, other)
    order = torch.randperm(150, generator=torch.Generator().manual_seed(1_000_008))
    inputs, y = torch.from_numpy(codes).float(), torch.from_numpy(data.y)
    for step, rows in enumerate(order.split(40)[:3]):
        # A new rate for each step, as a schedule would set it.
        if step == 0:
            optimizer = torch.optim.Adam(other.parameters())
        optimizer.param_groups[0]["lr"] = 0.01 * (1.0 - step / 3.0)
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy(other(inputs[rows])[:, 0], y[rows])
        (loss + other.get_regularization_loss().sum()).backward()
        optimizer.step()
    with torch.no_grad():
        expected = other(inputs[150:])[:, 0].numpy()
    assert np.allclose(1.0 / (1.0 + np.exp(-ours[1])), expected, atol=1e-5)


def test_dlrm_equals_a_loop_over_pairs_of_vectors(network, batch):
    net = network("DLRM", bottom=(3,))
    codes, numbers = batch
    first = [0, LEVELS[0], LEVELS[0] + LEVELS[1]]
    for row in range(codes.shape[1]):
        hidden = numbers[:, row : row + 1]
        for layer in net.bottom:
            hidden = layer(hidden)
        table = net.embedding.weight
        vectors = [hidden[0, 0], *(table[first[f] + codes[0, row, f]] for f in range(3))]
        products = [vectors[i] @ vectors[j] for i in range(4) for j in range(i)]
        inputs = torch.cat([hidden[0, 0], torch.stack(products)])
        expected = net.output(net.perceptron(inputs[None, None]))[0, 0, 0] + net.bias[0, 0]
        assert torch.allclose(net(codes, numbers)[0, row], expected, atol=1e-5)


def test_dlrm_does_without_numbers(network, batch):
    net = network("DLRM", n_numbers=0)
    assert net(batch[0], batch[1][:, :, :0]).shape == (1, 11)


def test_batch_norm_equals_torch_for_each_seed(click):
    norm = click.layers.BatchNorm(click.layers.Draws([0, 1]), 4)
    twins = [nn.BatchNorm1d(4) for _ in range(2)]
    torch.manual_seed(0)
    for _ in range(3):
        x = 2.0 + 3.0 * torch.randn(2, 9, 4)
        expected = torch.stack([twin(part) for twin, part in zip(twins, x, strict=True)])
        assert torch.allclose(norm(x), expected, atol=1e-5)
    norm.eval()
    expected = torch.stack([twin.eval()(part) for twin, part in zip(twins, x, strict=True)])
    assert torch.allclose(norm(x), expected, atol=1e-5)


def test_dropout_keeps_the_mean_and_the_stated_share(click):
    dropout = click.layers.Dropout(click.layers.Draws([0, 1]), 0.7)
    x = torch.ones(2, 400, 50)
    found = dropout(x)
    kept = (found > 0).float().mean(dim=(1, 2))
    standard_error = (0.3 * 0.7 / 20_000) ** 0.5
    assert ((kept - 0.3).abs() < 4 * standard_error).all()
    assert torch.allclose(found[found > 0], torch.tensor(1.0 / 0.3))
    assert dropout.eval()(x) is x


@pytest.mark.parametrize(
    "design", [{}, {"batch_norm": True}, {"dropout": 0.5}], ids=["plain", "norm", "dropout"]
)
@pytest.mark.parametrize("architecture", ["xDeepFM", "DLRM"])
def test_a_seed_gives_the_same_model_in_any_block(click, architecture, design):
    data = click.data.synthetic(1, 600, 200)
    design = click.networks.Design(architecture, widths=(8, 8), **design)
    # Under Adam, rounding alone would move the biases before a batch norm: their gradient is zero.
    pipeline = click.training.Pipeline("p", design, "sgd", learning_rate=0.3, batch_size=64)
    together = click.training.train(pipeline, data, [4, 7, 9], "constant")
    alone = click.training.train(pipeline, data, [7], "constant")
    assert np.allclose(together[1], alone[0], atol=1e-4)
    assert not np.allclose(together[0], alone[0], atol=1e-3)
