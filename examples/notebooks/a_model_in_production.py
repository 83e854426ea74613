# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A model in production
#
# A model of hourly bike rentals was trained on the first months. Each later month comes without labels
# at first. What can be said of its error before they arrive?

# %%
from pathlib import Path

import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from trueup.monitoring import ConsensusEstimator

FOLDER = next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "examples/data").exists())
bikes = pd.read_csv(FOLDER / "examples/data/bike_hour_17379.csv.gz")
FEATURES = ["season", "hr", "holiday", "workingday", "weathersit", "temp", "hum", "windspeed"]

# %% [markdown]
# The target is how a day's rentals are spread over its hours: 1 is an average hour. One half of 2011
# trains the model; the other half is its reference, whose labels are known.

# %%
bikes["share"] = 24 * bikes["cnt"] / bikes.groupby("dteday")["cnt"].transform("sum")
year = bikes[bikes["yr"] == 0].sample(frac=1.0, random_state=0)
half = len(year) // 2
model = HistGradientBoostingRegressor(random_state=0).fit(
    year[:half][FEATURES], year[:half]["share"]
)
reference = year[half : half + 2000]
check = ConsensusEstimator(random_state=0).fit(
    reference[FEATURES].to_numpy(float), model.predict(reference[FEATURES]), reference["share"]
)

# %% [markdown]
# June 2012, without a look at its labels:

# %%
june = bikes[(bikes["yr"] == 1) & (bikes["mnth"] == 6)]
estimate = check.estimate(june[FEATURES].to_numpy(float), model.predict(june[FEATURES]))
estimate

# %%
estimate.plot()
# %% [markdown]
# When the labels come, the estimate meets the truth.

# %%
realized = ((model.predict(june[FEATURES]) - june["share"]) ** 2).mean()
print(
    f"estimated {estimate.mse:.3f} [{estimate.low:.3f}, {estimate.high:.3f}], realized {realized:.3f}"
)

# %% [markdown]
# For a model in MLflow's registry, `trueup monitor init | run | realize | report` does all of this, and
# learns from the labels as they come: see docs/monitor.md.
