"""Evaluations by the Trainer of Hugging Face in two processes, each of half of the batches."""

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
    def __init__(self, how):
        super().__init__()
        self.how = how
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x, labels):
        if self.how == "fails" and not self.training and torch.distributed.get_rank() == 1:
            return {"loss": self.layer(x).sum()}
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(rows)


def evaluate(how, folder):
    model = Model(how)
    arguments = transformers.TrainingArguments(
        folder,
        report_to=[],
        use_cpu=True,
        per_device_eval_batch_size=16,
        disable_tqdm=True,
        prediction_loss_only=how == "fails",
    )
    trainer = transformers.Trainer(
        model,
        arguments,
        eval_dataset=Stream() if how == "stream" else rows,
        callbacks=[HuggingFaceCallback()],
    )
    if trainer.is_world_process_zero():
        mlflow.start_run(run_name=how)
    trainer.evaluate()
    if trainer.is_world_process_zero():
        mlflow.end_run()
        logits = model.layer(x)
        logit = (logits[:, 1] - logits[:, 0]).tolist()
        print("SHOW", json.dumps({"how": how, "y": y.tolist(), "logit": logit}))


torch.manual_seed(0)
x = torch.randn(N, 3)
y = (torch.rand(N) < torch.sigmoid(x[:, 0] + 0.5)).long()
rows = [{"x": x[i], "labels": int(y[i])} for i in range(N)]
mlflow.set_experiment("tests")
for word in sys.argv[2:]:
    evaluate(word, sys.argv[1])
torch.distributed.barrier()  # a process that ends while the other speaks to it may abort
torch.distributed.destroy_process_group()
