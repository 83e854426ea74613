"""An evaluation by the Trainer of Hugging Face in two processes, each of half of the batches."""

import json
import sys
import warnings

import mlflow
import torch
import transformers

from trueup_mlflow import HuggingFaceCallback

warnings.simplefilter("ignore")
N = 93  # the last round of batches begins anew for the second process


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x, labels):
        if sys.argv[1] == "fails" and not self.training and torch.distributed.get_rank() == 1:
            return {"loss": self.layer(x).sum()}
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(rows)


torch.manual_seed(0)
x = torch.randn(N, 3)
y = (torch.rand(N) < torch.sigmoid(x[:, 0] + 0.5)).long()
rows = [{"x": x[i], "labels": int(y[i])} for i in range(N)]
model = Model()
arguments = transformers.TrainingArguments(
    sys.argv[2],
    report_to=[],
    use_cpu=True,
    per_device_eval_batch_size=16,
    disable_tqdm=True,
    prediction_loss_only=sys.argv[1] == "fails",
)
trainer = transformers.Trainer(
    model,
    arguments,
    eval_dataset=Stream() if sys.argv[1] == "stream" else rows,
    callbacks=[HuggingFaceCallback()],
)
if trainer.is_world_process_zero():
    mlflow.set_experiment("tests")
    mlflow.start_run()
trainer.evaluate()
if trainer.is_world_process_zero():
    mlflow.end_run()
    logits = model.layer(x)
    logit = (logits[:, 1] - logits[:, 0]).tolist()
    print("SHOW", json.dumps({"y": y.tolist(), "logit": logit}))
