# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Which model is better?
#
# Two networks for late flights, six seeds each. Is the difference real, and how many more seeds would
# settle it?

# %%
import sys
from pathlib import Path

FOLDER = next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "examples/data").exists())
sys.path.insert(0, str(FOLDER / "examples"))

import torch
from click_model import PIPELINES, load_flights, train

from trueup import evaluate
from trueup.comparison import compare, required_seeds

torch.set_num_threads(1)  # for so small a network more threads only wait for each other
rows = load_flights().validation


def calibrated_loss(pipeline, seed):
    logit = train(PIPELINES[pipeline], seed)
    return evaluate(rows.late, y_logit=logit, row_id=rows.row_id).calibrated


deepfm = {seed: calibrated_loss("DeepFM", seed) for seed in range(6)}
mlp = {seed: calibrated_loss("MLP", seed) for seed in range(6)}

# %% [markdown]
# The verdict may be looked at after each seed: its error rate holds whenever one stops.

# %%
decision = compare(deepfm, mlp)
print(decision.sentence("DeepFM", "MLP"))

# %%
decision.plot()
# %% [markdown]
# Too early? Then the next question is what certainty would cost.

# %%
print(required_seeds(list(deepfm.values()), list(mlp.values())))
