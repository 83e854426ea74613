"""The callback for Lightning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import MLFlowLogger
from torch.utils.data import DistributedSampler

from trueup.errors import InvalidInputError, TrueupError
from trueup_mlflow.callbacks.reporter import Reporter
from trueup_mlflow.write.failures import describe
from trueup_mlflow.write.items import calibrated_key, metric_key

Read = Callable[[Any, Any], Mapping[str, Any]]
Found = Mapping[str, torch.Tensor] | Exception
_NAMES = ("y_true", "y_pred", "y_logit")
_DEALT_OTHERWISE = InvalidInputError(
    "validation rows of several processes must be dealt out by torch's DistributedSampler without "
    "shuffle, all of them read",
    "others",
    "Validate in one process, or gather the predictions and call trueup_mlflow.log_evaluation in "
    "the first.",
)


def read_outputs(outputs: Any, _batch: Any) -> Mapping[str, Any]:
    """Return ``y_true`` and ``y_pred`` or ``y_logit`` from what ``validation_step`` returned."""
    keys = outputs if isinstance(outputs, Mapping) else ()
    found = {name: outputs[name] for name in _NAMES if name in keys}
    if "y_true" not in found or len(found) != 2:
        got = f"the keys {sorted(outputs)}" if isinstance(outputs, Mapping) else type(outputs)
        raise InvalidInputError(
            "validation_step must return y_true and y_pred or y_logit as a dictionary",
            str(got),
            'Add return {"loss": loss, "y_true": y, "y_logit": logits}, or pass read=.',
        )
    return found


class TrueupCallback(Callback):
    """Logs vanilla and calibrated loss of each validation epoch of a Lightning trainer.

    Parameters
    ----------
    loss : str, default "log_loss"
        A loss of :func:`trueup.evaluate`.
    read : callable, optional
        Takes what ``validation_step`` returned and the batch; returns a mapping with the tensors
        ``y_true`` and ``y_pred`` or ``y_logit``. By default ``validation_step`` returns it.
    prefix : str, default "val_"
        Put before the loss in each key.
    run_id : str, optional
        The run; by default that of the trainer's ``MLFlowLogger``, else the active run.
    **options
        Other keywords of :func:`trueup.evaluate`.

    Notes
    -----
    The step is the trainer's global step. The calibrated loss is among the trainer's callback
    metrics too, under its key (``calibrated_val_log_loss``), so that early stopping and
    checkpoints can monitor it; give them after this callback. Of several data loaders the first
    one is read. With several processes, where the rows are dealt out by torch's
    ``DistributedSampler`` as Lightning does by itself, the first process gathers them in the order
    of the data set, each row once, and logs; dealt out in any other way nothing is logged, with a
    warning. A failure of the evaluation is a warning and a tag of the run; the training goes on.

    Examples
    --------
    >>> import mlflow
    >>> import torch
    >>> from lightning.pytorch import LightningModule, Trainer
    >>> from trueup_mlflow import LightningCallback
    >>> class Logistic(LightningModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.model = torch.nn.Linear(1, 1)
    ...     def training_step(self, batch):
    ...         return self.validation_step(batch)["loss"]
    ...     def validation_step(self, batch):
    ...         x, y = batch
    ...         logit = self.model(x)[:, 0]
    ...         loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, y)
    ...         return {"loss": loss, "y_true": y, "y_logit": logit}
    ...     def configure_optimizers(self):
    ...         return torch.optim.SGD(self.parameters(), lr=0.1)
    >>> x = torch.linspace(-1.0, 1.0, 200)[:, None]
    >>> rows = torch.utils.data.DataLoader([*zip(x, (x[:, 0] > 0).float())], batch_size=100)
    >>> callback, quiet = LightningCallback(), {"logger": False, "enable_checkpointing": False}
    >>> quiet |= {"enable_progress_bar": False, "enable_model_summary": False}
    >>> with mlflow.start_run() as run:
    ...     Trainer(max_epochs=1, accelerator="cpu", callbacks=[callback], **quiet).fit(
    ...         Logistic(), rows, rows
    ...     )
    >>> "calibrated_val_log_loss" in mlflow.get_run(run.info.run_id).data.metrics
    True
    """

    def __init__(
        self,
        *,
        loss: str = "log_loss",
        read: Read = read_outputs,
        prefix: str = "val_",
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._loss = loss
        self._read = read
        self._reporter = Reporter(prefix, run_id, options=options)
        self._parts: list[dict[str, torch.Tensor]] = []
        self._failure: Exception | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Find the run of the trainer's logger."""
        logger = next((log for log in trainer.loggers if isinstance(log, MLFlowLogger)), None)
        if logger is not None and trainer.is_global_zero and self._reporter.run_id is None:
            try:
                self._reporter.client = logger.experiment
                self._reporter.run_id = logger.run_id
            except Exception as failure:  # there is no run that a tag could go to
                self._reporter.give_up(f"calibrated metrics are not logged: {describe(failure)}")

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the rows of the last epoch."""
        self._parts = []

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keep labels and predictions on the CPU, and nothing else of the batch."""
        if dataloader_idx != 0 or trainer.sanity_checking or self._failure is not None:
            return
        try:
            self._parts.append(_as_rows(self._read(outputs, batch)))
        except Exception as failure:  # it would end the training of the user
            self._parts, self._failure = [], failure

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluate the rows of the epoch; the calibrated loss is told to all processes."""
        if trainer.sanity_checking:
            return
        calibrated = trainer.strategy.broadcast(self._log(trainer))
        if calibrated is None:
            return
        key = calibrated_key(metric_key(self._loss, self._reporter.prefix))
        try:
            pl_module.log(key, calibrated, logger=False, rank_zero_only=False)
        except Exception as failure:  # a key that Lightning refuses
            if trainer.is_global_zero:
                self._reporter.fail(self._loss, failure)

    def _log(self, trainer: Trainer) -> float | None:
        """Log in the first process and return the calibrated loss; None in the others."""
        found: Found = _joined(self._parts) if self._failure is None else self._failure
        self._parts = []
        if trainer.world_size > 1:
            found = gathered(found, trainer)
        if isinstance(found, Exception):
            self._reporter.fail(self._loss, found)
        elif found:
            rows = found
            evaluation = self._reporter.log(
                trainer.global_step, loss=lambda: self._loss, predict=lambda _: rows
            )
            return None if evaluation is None else evaluation.calibrated
        return None


def gathered(mine: Found, trainer: Trainer) -> Found:
    """Return the rows of all processes in the first one, in the order of the data set, else none.

    Torch's sampler deals the rows out in turn, and gives some of them a second time where the
    processes could not have as many each; those are dropped. All processes come here, each with
    its rows or why it has none; an exception of any is that of the first one.
    """
    n_rows = _dealt_rows(trainer)
    if n_rows is None:
        return _DEALT_OTHERWISE if trainer.is_global_zero else {}
    sent = TrueupError(describe(mine)) if isinstance(mine, Exception) else mine
    parts: list[Any] = [None] * trainer.world_size
    torch.distributed.gather_object(sent, parts if trainer.is_global_zero else None)
    if not trainer.is_global_zero:
        return {}
    failures = [part for part in parts if isinstance(part, Exception)]
    if failures:
        return failures[0]
    if len({len(column) for part in parts for column in part.values()}) > 1:
        return _DEALT_OTHERWISE
    return {name: _in_turn([part[name] for part in parts])[:n_rows] for name in parts[0]}


def _dealt_rows(trainer: Trainer) -> int | None:
    """Return how many rows torch's sampler deals out to the processes; None for another sampler."""
    loaders = trainer.val_dataloaders
    while isinstance(loaders, (list, tuple, Mapping)):
        loaders = next(iter(loaders.values() if isinstance(loaders, Mapping) else loaders))
    sampler = getattr(loaders, "sampler", None)
    if not isinstance(sampler, DistributedSampler) or sampler.shuffle or sampler.drop_last:
        return None
    n_rows = len(sampler.dataset)  # type: ignore[arg-type] # which torch's sampler asks for itself
    return n_rows if sampler.num_replicas == trainer.world_size else None


def _in_turn(columns: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the first row of each, the second row of each, and so on."""
    return torch.stack(tuple(columns), dim=1).flatten(0, 1)


def _joined(parts: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _as_rows(part: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors on the CPU; a last batch of one row may have lost its dimension."""
    on_cpu = {name: tensor.detach().cpu() for name, tensor in part.items()}
    if "y_true" in on_cpu and on_cpu["y_true"].ndim == 0:
        return {
            name: tensor.reshape(1, -1)
            if tensor.ndim == 1 and len(tensor) > 1
            else tensor.reshape(tensor.shape or (1,))
            for name, tensor in on_cpu.items()
        }
    return {name: tensor.reshape(tensor.shape or (1,)) for name, tensor in on_cpu.items()}


LightningCallback = TrueupCallback
"""The callback under the name that it has in :mod:`trueup_mlflow`."""
