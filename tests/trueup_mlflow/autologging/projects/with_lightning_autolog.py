"""A training with Lightning with MLflow's autologging; it knows nothing of trueup."""

import lightning
import mlflow
import torch
from rows import X, X_val, show, y, y_val
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        loss = functional.binary_cross_entropy_with_logits(self.layer(batch[0])[:, 0], batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        loss = functional.binary_cross_entropy_with_logits(self.layer(batch[0])[:, 0], batch[1])
        self.log("val_loss", loss)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(y)), batch_size=32)
valid = DataLoader(TensorDataset(torch.tensor(X_val), torch.tensor(y_val)), batch_size=32)
model = Model()
mlflow.pytorch.autolog(log_models=False)
trainer = lightning.Trainer(
    max_epochs=2,
    logger=False,
    accelerator="cpu",
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train, valid)
with torch.no_grad():
    show(y=y_val, z=model.layer(torch.tensor(X_val))[:, 0])
