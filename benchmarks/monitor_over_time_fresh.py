"""Streams for ``monitor_over_time.py`` on which nothing was chosen."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from monitor_over_time_cases import (
    PERIOD,
    TARGET,
    Case,
    boosted,
    boosted_classes,
    forest,
    logistic,
    ridge,
)

HOUSE = "LuisM78/Appliances-energy-prediction-data"
NAB = "numenta/NAB"
POLLS = "fivethirtyeight/data"
BASEBALL = "chadwickbureau/baseballdatabank"


def appliances(folder: Path) -> pd.DataFrame:
    """Log energy of a house's appliances in ten minutes of 2016, by five days."""
    rows = pd.read_csv(folder / HOUSE / "testing.csv", parse_dates=["date"]).sort_values("date")
    found = rows[["lights", "T1", "RH_1", "T2", "RH_2", "T_out", "RH_out", "Windspeed"]]
    found = found.astype(float).assign(hour=rows["NSM"] / 3600.0)
    found[PERIOD] = (rows["date"] - rows["date"].min()).dt.days // 5
    return found.assign(**{TARGET: np.log(rows["Appliances"].astype(float))})


def taxi(folder: Path) -> pd.DataFrame:
    """Taxi riders (in 1,000) in New York in half an hour of 2014/15 by week, a day ahead."""
    rows = _series(folder / NAB / "data/realKnownCause/nyc_taxi.csv")
    value = rows["value"] / 1_000.0
    found = pd.DataFrame(
        {
            "hour": rows["timestamp"].dt.hour + rows["timestamp"].dt.minute / 60.0,
            "weekday": rows["timestamp"].dt.weekday * 1.0,
            "a day before": value.shift(48),
            "a week before": value.shift(336),
        }
    )
    return found.assign(**{TARGET: value, PERIOD: np.arange(len(rows)) // 336})


def machine(folder: Path) -> pd.DataFrame:
    """Temperature of a machine that is to fail, an hour ahead, by two days."""
    name = "machine_temperature_system_failure.csv"
    rows = _series(folder / NAB / "data/realKnownCause" / name)
    value = rows["value"]
    found = pd.DataFrame({"now": value, "hour's change": value.diff(12)})
    found["six hours"] = value.rolling(72).mean()
    days = (rows["timestamp"] - rows["timestamp"].min()).dt.days
    return found.assign(**{TARGET: value.shift(-12), PERIOD: days // 2})


def tweets(folder: Path) -> pd.DataFrame:
    """Log number of tweets on Apple in five minutes, an hour ahead, by two days."""
    rows = _series(folder / NAB / "data/realTweets/Twitter_volume_AAPL.csv")
    value = np.log1p(rows["value"])
    found = pd.DataFrame({"hour": rows["timestamp"].dt.hour * 1.0, "now": value})
    found["hour's mean"], found["day's mean"] = value.rolling(12).mean(), value.rolling(288).mean()
    days = (rows["timestamp"] - rows["timestamp"].min()).dt.days
    return found.assign(**{TARGET: value.shift(-12), PERIOD: days // 2})


def polls(folder: Path, *, called: bool) -> pd.DataFrame:
    """Margin of an American election, or whether its poll called the winner, by half-year."""
    rows = pd.read_csv(folder / POLLS / "pollster-ratings/raw-polls.csv", low_memory=False)
    rows = rows[rows["rightcall"].isin([0, 1]) & rows["samplesize"].notna()]
    voted, polled = (pd.to_datetime(rows[name]) for name in ("electiondate", "polldate"))
    found = pd.DataFrame({"size": np.log(rows["samplesize"]), "margin": rows["margin_poll"] * 1.0})
    found["days"] = (voted - polled).dt.days * 1.0
    for kind in ("Pres-G", "Sen-G", "House-G", "Pres-P"):
        found[kind] = (rows["type_simple"] == kind) * 1.0
    if called:
        found["margin"] = found["margin"].abs()
    target = rows["rightcall" if called else "margin_actual"] * 1.0
    return found.assign(**{TARGET: target, PERIOD: voted.dt.year * 2 + (voted.dt.month > 6)})


def salaries(folder: Path) -> pd.DataFrame:
    """Log salary of a baseball player, from that of the year before, by year."""
    rows = pd.read_csv(folder / BASEBALL / "core/Salaries.csv")
    rows = rows[rows["salary"] > 0].groupby(["playerID", "yearID"], as_index=False).first()
    rows["log"] = np.log(rows["salary"])
    before = rows.assign(yearID=rows["yearID"] + 1)[["playerID", "yearID", "log"]]
    rows = rows.merge(before, on=["playerID", "yearID"], suffixes=("", " before"))
    years = rows["yearID"] - rows.groupby("playerID")["yearID"].transform("min")
    found = pd.DataFrame({"before": rows["log before"], "years": years * 1.0})
    return found.assign(**{TARGET: rows["log"], PERIOD: rows["yearID"]})


def teams(folder: Path, *, wins: bool) -> pd.DataFrame:
    """Attendance (in 100,000) of a baseball team, or whether it wins more often, by year."""
    rows = pd.read_csv(folder / BASEBALL / "core/Teams.csv").sort_values(["franchID", "yearID"])
    rows = rows[rows["yearID"] >= (1901 if wins else 1961)]
    rows["share"], rows["fans"] = rows["W"] / (rows["W"] + rows["L"]), rows["attendance"] / 1e5
    rows["scored"] = (rows["R"] - rows["RA"]) / rows["G"]
    before = rows.groupby("franchID")[["share", "fans", "scored"]].shift(1)
    if wins:
        found = before[["share", "scored"]].assign(**{TARGET: (rows["share"] > 0.5) * 1.0})
        return found.assign(**{PERIOD: rows["yearID"] // 2})
    found = before[["share", "fans"]].assign(now=rows["share"])
    return found.assign(**{TARGET: rows["fans"], PERIOD: rows["yearID"]})


def _series(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, parse_dates=["timestamp"]).sort_values("timestamp", ignore_index=True)


FRESH = (
    Case("house: appliances", HOUSE, appliances, boosted),
    Case("New York: taxi riders", NAB, taxi, boosted, reference="later"),
    Case("machine: temperature", NAB, machine, ridge, reference="later"),
    Case("tweets on Apple", NAB, tweets, forest),
    Case("polls: margin", POLLS, partial(polls, called=False), ridge, reference="later"),
    Case("polls: right call", POLLS, partial(polls, called=True), logistic, brier=True),
    Case("baseball: salary", BASEBALL, salaries, boosted),
    Case("baseball: attendance", BASEBALL, partial(teams, wins=False), ridge, reference="later"),
    Case("baseball: winning", BASEBALL, partial(teams, wins=True), boosted_classes, brier=True),
)
