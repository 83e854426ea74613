"""A summary in a training loop on two ranks, as a torchmetrics metric would be used."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit

from trueup import evaluate

RANK = """
import sys
import torch
import torch.distributed as dist
from trueup.summaries import LogLossSummary, from_bytes

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
data = torch.load(f"{folder}/rows.pt")
summary = LogLossSummary()
for epoch in range(2):  # each rank sees every second row, in batches
    summary.reset()
    for ids in torch.arange(rank, len(data["y"]), 2).split(700):
        logit = data["logit"][ids].requires_grad_()
        summary.update(data["y"][ids], y_logit=logit, row_id=ids)
    parts = [None, None]
    dist.all_gather_object(parts, summary.to_bytes())
    total = LogLossSummary()
    for part in parts:
        total.merge(from_bytes(part))
result = total.compute()
print(repr(result.vanilla), repr(result.calibrated), result.fingerprint, sep="|")
dist.destroy_process_group()
"""


def test_two_ranks_agree_with_one_process(tmp_path):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    logit = rng.normal(-1.6, 1.2, 5_000)
    y_true = (rng.random(5_000) < expit(0.7 * logit + 0.2)).astype(float)
    rows = {"y": torch.from_numpy(y_true), "logit": torch.from_numpy(logit)}
    torch.save(rows, tmp_path / "rows.pt")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    outputs = []
    for rank in ranks:
        out, err = rank.communicate(timeout=300)
        assert rank.returncode == 0, err
        outputs.append(out.strip())
    assert outputs[0] == outputs[1]
    vanilla, calibrated, fingerprint = outputs[0].split("|")
    expected = evaluate(y_true, y_logit=logit)
    assert float(vanilla) == pytest.approx(expected.vanilla, abs=1e-12)
    assert float(calibrated) == pytest.approx(expected.calibrated, abs=1e-12)
    assert fingerprint == expected.fingerprint
