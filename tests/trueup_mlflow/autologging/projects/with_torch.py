"""A training with a plain torch loop; it knows nothing of trueup."""

import mlflow
import torch
from rows import X, X_val, show, y, y_val
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(y)), batch_size=32)
valid = DataLoader(TensorDataset(torch.tensor(X_val), torch.tensor(y_val)), batch_size=32)
criterion = nn.BCEWithLogitsLoss()
with mlflow.start_run():
    for epoch in range(2):
        model.train()
        for a, b in train:
            optimizer.zero_grad()
            criterion(model(a).squeeze(1), b).backward()
            optimizer.step()
        model.eval()
        total = right = 0.0
        with torch.no_grad():
            for a, b in valid:
                z = model(a).squeeze(1)
                total += criterion(z, b).item() * len(b)
                right += ((z > 0) == b).sum().item()
        mlflow.log_metric("val_loss", total / len(valid.dataset), step=epoch)
        mlflow.log_metric("val_accuracy", right / len(valid.dataset), step=epoch)
with torch.no_grad():
    show(y=y_val, z=torch.cat([model(a).squeeze(1) for a, _ in valid]))
