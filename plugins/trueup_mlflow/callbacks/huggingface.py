"""The callback for the Trainer of Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trueup.errors import InvalidInputError, TrueupError
from trueup_mlflow.callbacks.reporter import Reporter
from trueup_mlflow.write.failures import describe

_LOSS_END = "_loss"
_Part = tuple[torch.Tensor, torch.Tensor]
_DEALT_OTHERWISE = TrueupError(
    "the processes were not dealt the batches of a data set of known length in turn. Evaluate in "
    "one process, or gather the predictions and call trueup_mlflow.log_evaluation in the first"
)


class TrueupCallback(TrainerCallback):
    """Logs vanilla and calibrated loss of each evaluation of a ``transformers.Trainer``.

    Parameters
    ----------
    loss : str, optional
        A loss of :func:`trueup.evaluate`; by default the mean squared error for models of one
        output, and the log loss for several.
    prefix : str, optional
        Put before the loss in each key; by default that of the Trainer's own metrics, ``eval_``.
    run_id : str, optional
        The run; the active run by default, which the Trainer's MLflow integration starts.
    **options
        Other keywords of :func:`trueup.evaluate`.

    Notes
    -----
    The step is the Trainer's global step. The logits are those that the Trainer's evaluation
    computes: a hook on the model's forward pass sees them, and nothing is computed twice. With
    several processes each sees a part of the rows: the first gathers them in the order of the data
    set, each row once, and logs. Models with several labels a row (tokens, several outputs) are
    refused with a warning and a tag of the run; the training goes on.

    Examples
    --------
    >>> import mlflow
    >>> import torch
    >>> from transformers import BertConfig, BertForSequenceClassification, Trainer
    >>> from transformers import TrainingArguments
    >>> from trueup_mlflow import HuggingFaceCallback
    >>> small = dict(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = BertForSequenceClassification(BertConfig(**small, intermediate_size=8))
    >>> words = torch.arange(80) % 7 + 1
    >>> rows = [{"input_ids": word[None], "labels": int(word > 3)} for word in words]
    >>> quiet = TrainingArguments("out", report_to=[], use_cpu=True)
    >>> with mlflow.start_run() as run:
    ...     trainer = Trainer(model, quiet, eval_dataset=rows, callbacks=[HuggingFaceCallback()])
    ...     _ = trainer.evaluate()
    >>> "calibrated_eval_log_loss" in mlflow.get_run(run.info.run_id).data.metrics
    True
    """

    def __init__(
        self,
        *,
        loss: str | None = None,
        prefix: str | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        self._loss = loss
        self._prefix = prefix
        self._reporter = Reporter(prefix or "eval_", run_id, options=options)
        self._parts: list[_Part] = []
        self._failure: Exception | None = None

    def on_init_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Watch the forward passes of the model."""
        kwargs["model"].register_forward_hook(self._see, with_kwargs=True)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate the rows that were seen."""
        parts, self._parts = self._parts, []
        failure, self._failure = self._failure, None
        if args.world_size > 1:
            parts, failure = _gathered(parts, failure, kwargs.get("eval_dataloader"))
        if not state.is_world_process_zero:
            return
        if failure is not None:
            self._reporter.fail(self._loss or "log_loss", failure)
        if failure is not None or not parts:
            return
        metrics = kwargs.get("metrics") or {}
        own = next((key for key in metrics if key.endswith(_LOSS_END)), None)
        if self._prefix is None and own is not None:
            self._reporter.prefix = own.removesuffix("loss")
        logits, labels = (torch.cat(column) for column in zip(*parts, strict=True))
        self._reporter.log(
            state.global_step,
            loss=lambda: self._loss or _loss_for(logits),
            predict=lambda loss: _predictions(logits, labels, loss),
        )

    def on_predict(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Forget the rows of a prediction, which no metric of an evaluation belongs to."""
        self._parts = []

    def _see(self, model: Any, _args: Any, kwargs: Mapping[str, Any], outputs: Any) -> None:
        """Keep labels and logits of a batch of an evaluation."""
        if model.training:
            return
        try:
            labels, logits = kwargs["labels"], outputs["logits"]
            self._parts.append(
                (logits.detach().float().cpu(), labels.cpu().reshape(labels.shape or (1,)))
            )
        except Exception as failure:  # it would end the evaluation of the user
            self._failure = self._failure or TrueupError(describe(failure))


def _gathered(
    parts: list[_Part], failure: Exception | None, loader: Any
) -> tuple[list[_Part], Exception | None]:
    """Return the batches of all processes in the order of the data set, or a failure of any.

    Accelerate deals them out in turn; rows that it gives a second time are dropped.
    """
    found: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, (parts, failure))
    failures = [one for _, one in found if one is not None]
    rows: Any = getattr(loader, "dataset", None)
    if not failures and not (hasattr(rows, "__len__") and len({len(b) for b, _ in found}) == 1):
        failures = [_DEALT_OTHERWISE]
    if failures:
        return [], failures[0]
    in_turn = [
        part for step in zip(*(batches for batches, _ in found), strict=True) for part in step
    ]
    n_rows, kept = len(rows), []
    for logits, labels in in_turn:
        kept.append((logits[:n_rows], labels[:n_rows]))
        n_rows -= len(labels[:n_rows])
    return [part for part in kept if len(part[1])], None


def _loss_for(logits: torch.Tensor) -> str:
    return "mean_squared_error" if logits.ndim == 1 or logits.shape[-1] == 1 else "log_loss"


def _predictions(logits: torch.Tensor, labels: torch.Tensor, loss: str) -> Mapping[str, Any]:
    if logits.ndim > 2 or labels.ndim > 1:
        raise InvalidInputError(
            "the model must predict one label a row",
            f"logits of shape {tuple(logits.shape)}, labels of shape {tuple(labels.shape)}",
            "Call trueup_mlflow.log_evaluation instead.",
        )
    scores = logits.double().numpy()
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    elif scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1] - scores[:, 0]
    name = "y_pred" if loss == "mean_squared_error" else "y_logit"
    return {"y_true": labels.numpy(), name: scores}


HuggingFaceCallback = TrueupCallback
"""The callback under the name that it has in :mod:`trueup_mlflow`."""
