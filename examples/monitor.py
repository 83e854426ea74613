"""Monitor a registered model through 2012 before its labels arrive.

    python examples/monitor.py

The model says how the bike rentals of a day are spread over its hours (1 = an average hour). It is
trained on one half of 2011 and registered; the other half is its labelled reference. Each month of
2012 is judged before its labels, which arrive two months late. The estimate follows the seasons. It
cannot see that the hurricane at the end of October emptied the streets: the target changed at the
same features, which only the realized error shows.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
import mlflow
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from trueup_mlflow import monitor

DATA = Path(__file__).parent / "data" / "bike_hour_17379.csv.gz"
FEATURES = [
    "season",
    "hr",
    "holiday",
    "weekday",
    "workingday",
    "weathersit",
    "temp",
    "atemp",
    "hum",
    "windspeed",
]
NAME, TARGET, ROW_ID, LABEL_DELAY = "bike-hours", "share", "instant", 2


def register(train: pd.DataFrame) -> str:
    """Fit and register the model; return its URI."""
    model = HistGradientBoostingRegressor(random_state=0).fit(train[FEATURES], train[TARGET])
    with mlflow.start_run(run_name="train on 2011"):
        logged = mlflow.sklearn.log_model(
            model,
            name="model",
            registered_model_name=NAME,
            serialization_format="cloudpickle",
            pip_requirements=["scikit-learn"],
        )
    return f"models:/{NAME}/{logged.registered_model_version}"


@click.command()
@click.option("--store", default="sqlite:///mlflow.db", show_default=True, help="MLflow store.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("monitor.html"))
def main(store: str, out: Path) -> None:
    """Register, monitor twelve months, realize late labels, write the report."""
    if "MLFLOW_TRACKING_URI" not in os.environ:  # ``mlflow run`` sets it
        mlflow.set_tracking_uri(store)
    rentals = pd.read_csv(DATA)
    rentals[TARGET] = 24.0 * rentals["cnt"] / rentals.groupby("dteday")["cnt"].transform("sum")
    first_year = rentals[rentals["yr"] == 0].sample(frac=1.0, random_state=0)
    half = len(first_year) // 2
    uri = register(first_year[:half])
    columns = [*FEATURES, ROW_ID]
    monitor.init(uri, first_year[half:][[*columns, TARGET]], target=TARGET, row_id=ROW_ID)
    months = dict(list(rentals[rentals["yr"] == 1].groupby("mnth")))
    for month, batch in months.items():
        found = monitor.estimate(uri, batch[columns], at=f"2012-{month:02d}-28")
        flag = "" if found.trusted else "  not to be trusted"
        click.echo(f"2012-{month:02d}  {found.mse:.3f}  [{found.low:.3f}, {found.high:.3f}]{flag}")
        if month > LABEL_DELAY:
            monitor.realize(uri, months[month - LABEL_DELAY][[ROW_ID, TARGET]])
    for record in monitor.records(uri):
        if record.realized is not None:
            inside = "inside" if record.covered else "outside"
            click.echo(f"{record.time[:7]}  realized {record.realized:.3f}  {inside}")
    click.echo(f"report: {monitor.report(uri, out)}")


if __name__ == "__main__":
    main()
