"""Trainings with Lightning in two processes, each of which validates half of the rows."""

import json
import sys
import warnings

import lightning
import mlflow
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import MLFlowLogger
from torch.nn import functional
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from trueup_mlflow import LightningCallback

warnings.simplefilter("ignore")
N = 231  # odd: one row is dealt out twice


class Model(lightning.LightningModule):
    def __init__(self, how):
        super().__init__()
        self.how = how
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch, *_):
        return functional.binary_cross_entropy_with_logits(self.layer(batch[0])[:, 0], batch[1])

    def validation_step(self, batch, *_):
        if self.how == "fails" and self.global_rank == 1:
            return None
        return {"y_true": batch[1], "y_logit": self.layer(batch[0])[:, 0]}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def train(how):
    model = Model(how)
    checkpoint = ModelCheckpoint(monitor="calibrated_val_log_loss")
    trainer = lightning.Trainer(
        max_epochs=2,
        logger=MLFlowLogger("tests", run_name=how, tracking_uri=mlflow.get_tracking_uri()),
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        callbacks=[LightningCallback(), *([checkpoint] if how == "dealt" else [])],
        enable_checkpointing=how == "dealt",
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    shuffled = RandomSampler(rows) if how == "shuffled" else None
    trainer.fit(model, DataLoader(rows, 64), DataLoader(rows, 32, sampler=shuffled))
    if trainer.is_global_zero:
        logit = model.layer(x)[:, 0].tolist()
        seen = float(checkpoint.best_model_score or 0.0)
        shown = {"how": how, "y": y.tolist(), "logit": logit, "checkpoint": seen}
        print("SHOW", json.dumps(shown))


torch.manual_seed(0)
x = torch.randn(N, 3)
y = (torch.rand(N) < torch.sigmoid(x[:, 0] + 0.5)).float()
rows = TensorDataset(x, y)
for word in sys.argv[1:]:
    train(word)
torch.distributed.barrier()  # a process that ends while the other speaks to it may abort
torch.distributed.destroy_process_group()
