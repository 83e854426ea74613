from __future__ import annotations

import warnings
from contextlib import contextmanager

import mlflow
import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

import trueup
from trueup.errors import TrueupWarning

lightning = pytest.importorskip("lightning.pytorch")

from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402
from lightning.pytorch.loggers import MLFlowLogger  # noqa: E402

from trueup_mlflow.callbacks.lightning import TrueupCallback  # noqa: E402

TAG = "trueup.skipped.val_log_loss"


class Model(lightning.LightningModule):
    """A logistic regression whose validation step returns what the callback reads, and more."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3, 1)

    def step(self, batch):
        x, y = batch
        logit = self.layer(x)[:, 0]
        return y, logit, binary_cross_entropy_with_logits(logit, y)

    def training_step(self, batch, *_):
        return self.step(batch)[2]

    def validation_step(self, batch, *_):
        y, logit, loss = self.step(batch)
        return {"y_true": y, "y_logit": logit, "loss": loss}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def data(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 3))
    y = x[:, 0] + rng.logistic(size=200) > 0
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


@contextmanager
def quiet_lightning():
    """Lightning advises to use more workers and warns of what its dependencies deprecate."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        warnings.filterwarnings("ignore", ".*torch", DeprecationWarning)
        yield


@quiet_lightning()
def fit(callbacks, *, logger=False, epochs=2):
    """Return the model and the trainer after all epochs."""
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=logger,
        callbacks=callbacks,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=any(isinstance(c, ModelCheckpoint) for c in callbacks),
        log_every_n_steps=1,
    )
    model = Model()
    loaders = [DataLoader(TensorDataset(*data(seed)), batch_size=64) for seed in (0, 1)]
    trainer.fit(model, *loaders)
    assert trainer.current_epoch == epochs
    return model, trainer


@pytest.mark.parametrize("with_logger", [False, True])
def test_each_validation_epoch_is_logged_and_checkpoints_can_monitor(client, tmp_path, with_logger):
    checkpoint = ModelCheckpoint(dirpath=tmp_path / "ckpt", monitor="calibrated_val_log_loss")
    logger = MLFlowLogger("tests", tracking_uri=mlflow.get_tracking_uri()) if with_logger else False
    with mlflow.start_run() as active:
        model, _ = fit([TrueupCallback(), checkpoint], logger=logger, epochs=3)
    run_id = logger.run_id if with_logger else active.info.run_id
    history = client.get_metric_history(run_id, "calibrated_val_log_loss")
    assert [point.step for point in history] == [4, 8, 12]
    x, y = data(1)
    with torch.no_grad():
        logit = model.layer(x)[:, 0].double().numpy()
    expected = trueup.evaluate(y.numpy(), y_logit=logit)
    assert history[-1].value == pytest.approx(expected.calibrated, rel=1e-6)
    best = min(point.value for point in history)
    assert float(checkpoint.best_model_score) == pytest.approx(best, rel=1e-6)


class PartsSeen(TrueupCallback):
    """Keeps what it holds at the end of each epoch, before it is evaluated."""

    def on_validation_epoch_end(self, trainer, pl_module):
        self.seen = list(self._parts)
        super().on_validation_epoch_end(trainer, pl_module)


def read_with_gradients(outputs, batch):
    weight = torch.ones((), requires_grad=True)
    with torch.enable_grad():
        return {"y_true": batch[1], "y_logit": weight * outputs["y_logit"]}


@pytest.mark.parametrize("options", [{}, {"read": read_with_gradients}])
def test_only_detached_labels_and_predictions_on_the_cpu_are_kept(client, options):
    callback = PartsSeen(**options)
    with mlflow.start_run():
        fit([callback], epochs=1)
    assert len(callback.seen) == 4
    for part in callback.seen:
        assert part.keys() == {"y_true", "y_logit"}
        assert all(tensor.device.type == "cpu" for tensor in part.values())
        assert all(tensor.grad_fn is None for tensor in part.values())
        assert not any(tensor.requires_grad for tensor in part.values())
    assert callback._parts == []


class ReturnsTensor(Model):
    def validation_step(self, batch, *_):
        return self.step(batch)[2]


class ReturnsNothing(Model):
    def validation_step(self, batch, *_):
        self.step(batch)


class ReturnsOtherKeys(Model):
    def validation_step(self, batch, *_):
        return {"loss": self.step(batch)[2]}


@pytest.mark.parametrize("model", [ReturnsTensor, ReturnsNothing, ReturnsOtherKeys])
def test_validation_step_that_returns_no_predictions_gets_one_sentence(client, monkeypatch, model):
    monkeypatch.setattr(f"{__name__}.Model", model)
    reason = "validation_step must return y_true and y_pred or y_logit as a dictionary; got"
    with mlflow.start_run() as run, pytest.warns(TrueupWarning, match=reason) as seen:
        fit([TrueupCallback()])
    assert len([warning for warning in seen if warning.category is TrueupWarning]) == 1
    assert client.get_run(run.info.run_id).data.tags[TAG].startswith(reason)


class Squeezes(Model):
    """Its batches of one row have no dimension."""

    def validation_step(self, batch, *_):
        outputs = super().validation_step(batch)
        return {name: outputs[name].squeeze() for name in outputs}


def test_last_batch_of_one_row_without_dimension_is_a_row(client, monkeypatch):
    monkeypatch.setattr(f"{__name__}.Model", Squeezes)
    monkeypatch.setattr(f"{__name__}.data", lambda seed, whole=data: [t[:65] for t in whole(seed)])
    with mlflow.start_run() as run:
        model, _ = fit([TrueupCallback()])
    x, y = data(1)
    with torch.no_grad():
        expected = trueup.evaluate(y.numpy(), y_logit=model.layer(x)[:, 0].numpy())
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics["val_log_loss"] == pytest.approx(expected.vanilla, rel=1e-6)


def read_nothing(outputs, batch):
    raise KeyError("no such output")


def read_floats(outputs, batch):
    return {"y_true": 1.0, "y_logit": 0.5}


@pytest.mark.parametrize(
    ("read", "reason"),
    [(read_nothing, "KeyError: 'no such output'"), (read_floats, "AttributeError: 'float' object")],
)
def test_read_that_fails_is_one_warning_and_a_tag_and_training_goes_on(client, read, reason):
    with mlflow.start_run() as run, pytest.warns(TrueupWarning, match=reason) as seen:
        fit([TrueupCallback(read=read)])
    assert len([warning for warning in seen if warning.category is TrueupWarning]) == 1
    logged = client.get_run(run.info.run_id).data
    assert logged.metrics == {}
    assert logged.tags[TAG].startswith(reason)


class LogsTheKeyAlready(Model):
    """Logs the callback's key with options that Lightning does not let be changed later."""

    def log(self, name, *args, **kwargs):
        raise RuntimeError(f"{name} was logged with other options")


def test_key_that_the_module_refuses_is_a_warning_and_a_tag_and_training_goes_on(
    client, monkeypatch
):
    monkeypatch.setattr(f"{__name__}.Model", LogsTheKeyAlready)
    reason = "RuntimeError: calibrated_val_log_loss was logged with other options"
    with mlflow.start_run() as run, pytest.warns(TrueupWarning, match=reason):
        fit([TrueupCallback()])
    logged = client.get_run(run.info.run_id).data
    assert logged.tags[TAG] == reason
    assert "calibrated_val_log_loss" in logged.metrics  # of the first epoch, before the failure


class UnreachableLogger(MLFlowLogger):
    @property
    def experiment(self):
        raise ConnectionError("no such store")


def test_logger_without_a_store_is_a_warning(client):
    callback, logger = TrueupCallback(), UnreachableLogger(tracking_uri=mlflow.get_tracking_uri())
    with quiet_lightning():
        trainer = lightning.Trainer(logger=logger, callbacks=[callback], accelerator="cpu")
    with pytest.warns(TrueupWarning, match="not logged: ConnectionError: no such store"):
        callback.setup(trainer, Model(), "fit")
    batch = data(1)
    outputs = {"y_true": batch[1], "y_logit": batch[0][:, 0]}
    callback.on_validation_batch_end(trainer, Model(), outputs, batch, 0)
    callback.on_validation_epoch_end(trainer, Model())
    assert mlflow.active_run() is None
    assert client.search_runs([client.get_experiment_by_name("tests").experiment_id]) == []
