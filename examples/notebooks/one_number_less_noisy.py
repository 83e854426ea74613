# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # One number less noisy
#
# Train the same model on the same flights with several seeds. The validation loss differs; how much of
# that is only the mean prediction being off at the last step?

# %%
import sys
from pathlib import Path

FOLDER = next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "examples/data").exists())
sys.path.insert(0, str(FOLDER / "examples"))

import numpy as np
import torch
from click_model import PIPELINES, load_flights, train

from trueup import evaluate
from trueup.comparison import variance_reduction

torch.set_num_threads(1)  # for so small a network more threads only wait for each other
rows = load_flights().validation

# %% [markdown]
# One seed of a small network, one epoch over 90,000 flights of 2013. The sentence says what the bias
# costs; the intervals are those of drawing validation rows.

# %%
first = evaluate(rows.late, y_logit=train(PIPELINES["MLP"], 0), row_id=rows.row_id)
first

# %%
first.plot()
# %% [markdown]
# Now ten seeds. The calibrated values lie closer together.

# %%
results = [first] + [
    evaluate(rows.late, y_logit=train(PIPELINES["MLP"], seed), row_id=rows.row_id)
    for seed in range(1, 10)
]
vanilla = [result.vanilla for result in results]
calibrated = [result.calibrated for result in results]
print(f"vanilla    {np.mean(vanilla):.5f} ± {np.std(vanilla, ddof=1):.5f}")
print(f"calibrated {np.mean(calibrated):.5f} ± {np.std(calibrated, ddof=1):.5f}")

# %% [markdown]
# How much less noise is that? With ten seeds the interval is still wide: it is part of the number.

# %%
print(variance_reduction(vanilla, calibrated))

# %% [markdown]
# The bias of each seed is what was taken out. Positive: the network predicted too many delays.

# %%
print([round(result.bias_term, 2) for result in results])
