"""A training with metrics of torchmetrics; it knows nothing of trueup."""

import mlflow
import torch
import torchmetrics
from rows import X_val, show, t_val, y_val
from torch.nn import functional

z = torch.tensor(X_val[:, 0])
mse, rmse = torchmetrics.MeanSquaredError(), torchmetrics.MeanSquaredError(squared=False)
loss = torchmetrics.MeanMetric()
with mlflow.start_run(), torch.no_grad():
    columns = [z, torch.tensor(t_val), torch.tensor(y_val)]
    for a, b, c in zip(*(column.split(32) for column in columns), strict=True):
        mse.update(a, b)
        rmse(a, b)
        loss.update(functional.binary_cross_entropy_with_logits(a, c), weight=len(a))
    mlflow.log_metrics({"val_mse": mse.compute().item(), "val_rmse": float(rmse.compute())})
    mlflow.log_metric("val_loss", loss.compute().item())
show(y=y_val, t=t_val, z=z)
