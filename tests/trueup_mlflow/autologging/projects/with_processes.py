"""A training in two processes on gloo, the first of which logs; it knows nothing of trueup."""

import tempfile

import mlflow
import torch
import torch.distributed as dist
from rows import X, X_val, show, y, y_val
from torch import nn
from torch.multiprocessing import spawn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def loader(x, labels):
    rows = TensorDataset(torch.tensor(x), torch.tensor(labels))
    return DataLoader(rows, batch_size=32, sampler=DistributedSampler(rows, shuffle=False))


def summed(model, criterion, batches):
    model.eval()
    total = torch.zeros(2)
    with torch.no_grad():
        for a, b in batches:
            total += torch.tensor([criterion(model(a).squeeze(1), b) * len(b), len(b)])
    return total


def train(rank, folder):
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.BCEWithLogitsLoss()
    for a, b in loader(X, y):
        optimizer.zero_grad()
        criterion(model(a).squeeze(1), b).backward()
        optimizer.step()
    total = summed(model, criterion, loader(X_val, y_val))
    dist.all_reduce(total)
    if rank == 0:
        batches = DataLoader(TensorDataset(torch.tensor(X_val), torch.tensor(y_val)), 32)
        whole = summed(model.module, criterion, batches)
        with mlflow.start_run():
            mlflow.log_metric("val_loss", (whole[0] / whole[1]).item())
            mlflow.log_metric("reduced_loss", (total[0] / total[1]).item())
        with torch.no_grad():
            show(y=y_val, z=model.module(torch.tensor(X_val)).squeeze(1))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    spawn(train, (tempfile.mkdtemp(),), nprocs=2)
