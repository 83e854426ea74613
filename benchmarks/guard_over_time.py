"""The guard on rows in order of time: what it keeps, and what that does to the rows that follow.

Usage: ``python benchmarks/guard_over_time.py --data DATA [--streams STREAMS] [--seeds N]``

DATA is the folder of the real data sets, STREAMS one with ``elec.csv`` and ``weather.csv`` of the
scikit-multiflow repository (before its commit 3e89f14c). What is not there is left out and named.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from trueup.calibrators import (
    Calibrator,
    FieldOffsetCalibrator,
    Guarded,
    IsotonicCalibrator,
    PlattCalibrator,
    ShiftCalibrator,
)
from trueup.calibrators.base import Rows
from trueup.calibrators.judging.drift import DRIFT_WINDOWS, Backtest, cut_origins, log_loss_change
from trueup.calibrators.judging.guard_decision import Change, Rule

FloatArray = NDArray[np.float64]

CALIBRATORS: dict[str, Calibrator] = {
    "shift": ShiftCalibrator(),
    "platt": PlattCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "field offset": FieldOffsetCalibrator(n_knots=20),
}
CUTS = (0.4, 0.5, 0.6, 0.7, 0.8)
HORIZONS = {"next eighth": 0.125, "next half": 0.5}
LEAST_LATER = 200
Z = 1.96


@dataclass(frozen=True)
class Case:
    """Predictions of a model on rows after its training, in order of time."""

    p: FloatArray
    y: NDArray[np.int64]
    field: NDArray[Any]
    times: NDArray[Any]

    def rows(self, chosen: slice) -> Rows:
        """Return a stretch of rows as a calibrator checks them."""
        y = self.y[chosen].astype(np.float64)
        weight = np.ones(len(y))
        return Rows(self.p[chosen], y, {"f": self.field[chosen]}, weight, weight > 0.0)

    def bound(self, position: float) -> int:
        """Return the end of a time that is nearest to the position."""
        ends = np.flatnonzero(np.append(self.times[1:] != self.times[:-1], True)) + 1
        return int(ends[np.abs(ends - position).argmin()])


@dataclass(frozen=True)
class Outcome:
    """Whether a policy kept a calibrator, and the change of its log loss on later rows."""

    case: str
    policy: str
    kept: bool
    later: dict[str, Change]


def outcomes(name: str, case: Case) -> Iterator[Outcome]:
    """Yield what each policy does at each cut with each calibrator."""
    for cut in sorted({case.bound(share * len(case.y)) for share in CUTS}):
        if cut < len(case.y):
            for calibrator in CALIBRATORS.values():
                yield from _at_cut(name, case, cut, calibrator)


def _at_cut(name: str, case: Case, cut: int, calibrator: Calibrator) -> Iterator[Outcome]:
    known = slice(0, cut)
    plain = Backtest(calibrator, case.rows(known), 2)
    whole = plain.fitted_on(np.arange(cut))
    later = _later(case, cut, whole)
    yield Outcome(name, "always", True, later)
    yield Outcome(name, "one half", _kept_by_one_half(plain, case.times[known]), later)
    for policy, windows in (("origins", (1.0,)), ("origins, following", DRIFT_WINDOWS)):
        guarded = Guarded(calibrator, windows=windows, priority="log_loss").fit(
            case.p[known],
            case.y[known],
            fields={"f": case.field[known]},
            times=case.times[known],
        )
        decision = guarded.decision_
        used = later
        if decision.window < 1.0:
            used = _later(
                case, cut, plain.fitted_on(np.arange(cut)[-round(decision.window * cut) :])
            )
        yield Outcome(name, policy, decision.kept, used)


def _kept_by_one_half(backtest: Backtest, times: NDArray[Any]) -> bool:
    """Decide as the guard did before it had several origins."""
    (origin,) = cut_origins(times, 0.5, 1)
    return Rule(0.95, "log_loss").decide([backtest.at(origin, 1.0)], 1.0).kept


def _later(case: Case, cut: int, calibrator: Calibrator) -> dict[str, Change]:
    changes = {}
    for name, share in HORIZONS.items():
        end = max(case.bound(min(cut * (1.0 + share), len(case.y))), cut + 1)
        end = end if end - cut >= LEAST_LATER else case.bound(len(case.y))
        following = slice(cut, end)
        before, y = case.p[following], case.y[following].astype(np.float64)
        after = calibrator.predict_proba(before, fields={"f": case.field[following]})[:, 1]
        changes[name] = log_loss_change(y, before, after, np.ones(len(y)))
    return changes


@dataclass(frozen=True)
class Tally:
    """Counts over decisions: of resolved harms and gains, and of what was kept of them."""

    decisions: int
    harms: int
    harms_kept: int
    gains: int
    gains_kept: int
    total: float

    @classmethod
    def of(cls, found: Sequence[Outcome], horizon: str) -> Tally:
        """Count the outcomes of one policy."""
        later = [outcome.later[horizon] for outcome in found]
        harms = [change.value > Z * change.standard_error for change in later]
        gains = [change.value < -Z * change.standard_error for change in later]
        kept = [outcome.kept for outcome in found]
        return cls(
            decisions=len(found),
            harms=sum(harms),
            harms_kept=sum(a and b for a, b in zip(harms, kept, strict=True)),
            gains=sum(gains),
            gains_kept=sum(a and b for a, b in zip(gains, kept, strict=True)),
            total=sum(c.value for c, keep in zip(later, kept, strict=True) if keep) / len(found),
        )


def report(found: Sequence[Outcome]) -> None:
    """Print the totals and the cases."""
    by_policy: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        by_policy[outcome.policy].append(outcome)
    for horizon in HORIZONS:
        print(f"\n### The {horizon}")
        print("| policy | decisions | later harm kept | of harms | gains kept | mean change |")
        print("|---|---|---|---|---|---|")
        print(f"| never | {len(by_policy['always'])} | 0.0% | 0 | 0.0% | +0.00000 |")
        for policy, own in by_policy.items():
            t = Tally.of(own, horizon)
            print(
                f"| {policy} | {t.decisions} | {t.harms_kept / t.decisions:.1%} "
                f"| {t.harms_kept} of {t.harms} | {t.gains_kept / max(t.gains, 1):.1%} "
                f"({t.gains_kept} of {t.gains}) | {t.total:+.5f} |"
            )
    _report_cases(by_policy)


def _report_cases(by_policy: dict[str, list[Outcome]]) -> None:
    horizon = next(iter(HORIZONS))
    print(f"\n### By case, the {horizon}: harms kept of harms, gains kept of gains")
    print(f"| case | {' | '.join(by_policy)} |\n|---|{'---|' * len(by_policy)}")
    for name in dict.fromkeys(outcome.case for outcome in by_policy["always"]):
        cells = []
        for own in by_policy.values():
            t = Tally.of([outcome for outcome in own if outcome.case == name], horizon)
            cells.append(f"{t.harms_kept}/{t.harms}, {t.gains_kept}/{t.gains}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def predicted(X: FloatArray, y: Any, field: Any, times: Any, n_train: int) -> Case:
    """Train on the first rows and predict the later ones."""
    y = np.asarray(y, dtype=np.int64)
    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)
    p = model.fit(X[:n_train], y[:n_train]).predict_proba(X[n_train:])[:, 1]
    field, times = np.asarray(field)[n_train:], np.asarray(times)[n_train:]
    return Case(p, y[n_train:], field, times)


def _codes(frame: pd.DataFrame) -> FloatArray:
    columns = [
        frame[name] if frame[name].dtype.kind in "iuf" else frame[name].astype("category").cat.codes
        for name in frame
    ]
    return np.column_stack(columns).astype(np.float64)


def employment(data: Path) -> Case:
    """Census of employment, 2015 to 2018, with the probabilities of a model of 2014."""
    frame = pd.read_parquet(data / "acs_employment_ma/acs_employment_ma_277677.parquet")
    frame = frame.sort_values(["year", "id"])
    p = frame["predicted_probability"].to_numpy(np.float64)
    y = frame["employed"].to_numpy(np.int64)
    return Case(p, y, frame["RELP"].astype(str).to_numpy(), frame["year"].to_numpy())


def flights(data: Path) -> Case:
    """Delays of flights in 2013, each fourth; trained on January and February."""
    frame = pd.read_parquet(data / "nycflights13/flights_336776.parquet")
    frame = frame[frame["y_arr_delay15"].notna()].sort_values("time_hour").iloc[::4]
    weekday = frame["time_hour"].dt.day_of_week
    names = ["carrier", "origin", "dest", "hour", "distance", "flight"]
    X = _codes(frame[names].assign(weekday=weekday))
    n_train = int((frame["month"] <= 2).sum())
    days = frame["time_hour"].dt.day_of_year
    return predicted(X, frame["y_arr_delay15"], frame["carrier"].astype(str), days, n_train)


def bank(data: Path) -> Case:
    """Bank calls from 2008 to 2010; trained on the first 10,000."""
    frame = pd.read_parquet(data / "uci_bank_marketing/bank_additional_full_41188.parquet")
    names = ["age", "job", "marital", "education", "default", "housing", "loan", "contact",
             "campaign", "pdays", "previous", "poutcome"]  # fmt: skip
    X = _codes(frame[names])
    return predicted(X, frame["y"], frame["job"].astype(str), np.arange(len(frame)), 10_000)


def hospital(data: Path) -> Case:
    """Readmissions from 1999 to 2008 by number of the encounter; trained on the first 30,000."""
    frame = pd.read_parquet(data / "uci_diabetes130/diabetes130_101766.parquet")
    frame = frame.sort_values("encounter_id")
    names = ["race", "gender", "age", "admission_type_id", "discharge_disposition_id",
             "admission_source_id", "time_in_hospital", "num_lab_procedures", "num_procedures",
             "num_medications", "number_outpatient", "number_emergency", "number_inpatient",
             "number_diagnoses"]  # fmt: skip
    field = frame["medical_specialty"].astype(str)
    return predicted(_codes(frame[names]), frame["y"], field, np.arange(len(frame)), 30_000)


def bicycles(data: Path) -> Case:
    """Hours with more than 150 rides, 2011 and 2012; trained on the first 5,000 hours."""
    frame = pd.read_csv(data / "bike_sharing_hourly/bike_hour_17379.csv.gz")
    names = ["hr", "weekday", "workingday", "weathersit", "temp", "hum", "windspeed", "holiday"]
    days = np.asarray(frame["dteday"], dtype="datetime64[D]")
    return predicted(_codes(frame[names]), frame["cnt"] > 150, frame["hr"], days, 5_000)


def electricity(streams: Path) -> Case:
    """Whether the price of electricity rises, half-hours of two years; trained on 9,000."""
    frame = pd.read_csv(streams / "elec.csv")
    X = frame[["feat_1", "feat_2", "feat_3"]].to_numpy()  # the other prices start later
    half_hour = np.arange(len(frame)) % 48
    return predicted(X, frame["target"], half_hour // 4, np.arange(len(frame)) // 48, 9_000)


def weather(streams: Path) -> Case:
    """Whether it rains at an air base, days of 50 years; trained on the first 4,000."""
    frame = pd.read_csv(streams / "weather.csv")
    X = frame.drop(columns="target").to_numpy(np.float64)
    warmth = np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(0.1, 1.0, 0.1)))
    return predicted(X, frame["target"], warmth, np.arange(len(frame)), 4_000)


def made(kind: str, seed: int, n: int = 20_000) -> Case:
    """Draw labels of a model whose log-odds are off by what the kind says."""
    rng = np.random.default_rng([seed, *kind.encode()])
    margin, site, u = rng.normal(-1.0, 1.2, n), rng.integers(0, 12, n), np.arange(n) / n
    offset, steps = rng.normal(0.0, 0.35, 12)[site], np.cumsum(rng.normal(0.0, 1.0, 64))
    drift = {
        "stable bias": -0.1 * margin + 0.3 + offset,
        "no bias": 0.0 * margin,
        "random walk": 0.2 * np.interp(u * 63, np.arange(64), steps - steps[0]),
        "season": 0.3 * np.sin(2.0 * np.pi * (3.0 * u + rng.random())),
        "fading bias": 0.4 * (1.0 - u),
        "growing bias": 0.6 * u,
        "jump": np.where(u < rng.uniform(0.4, 0.9), 0.3, -0.3) + 0.5 * offset,
        "slope": margin * (0.2 - 0.6 * u),
    }[kind]
    y = (rng.random(n) < expit(margin + drift)).astype(np.int64)
    return Case(expit(margin), y, site, np.arange(n) // 100)


MADE = (
    "stable bias",
    "no bias",
    "random walk",
    "season",
    "fading bias",
    "growing bias",
    "jump",
    "slope",
)
REAL: tuple[Callable[[Path], Case], ...] = (employment, flights, bank, hospital, bicycles)
STREAMS: tuple[Callable[[Path], Case], ...] = (electricity, weather)


def cases(data: Path | None, streams: Path | None, seeds: int) -> Iterator[tuple[str, Case]]:
    """Yield the cases whose files are there, and the made ones."""
    for folder, readers in ((data, REAL), (streams, STREAMS)):
        for read in readers:
            try:
                if folder is not None:
                    yield read.__name__, read(folder)
            except FileNotFoundError as error:
                print(f"left out {read.__name__}: {error}")
    for kind in MADE:
        for seed in range(seeds):
            yield f"made: {kind}", made(kind, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--streams", type=Path, help="folder of elec.csv and weather.csv")
    parser.add_argument("--seeds", type=int, default=3, help="of each made case")
    options = parser.parse_args()
    found: list[Outcome] = []
    for name, case in cases(options.data, options.streams, options.seeds):
        found.extend(outcomes(name, case))
        print(f"{name}: {len(case.y)} rows", flush=True)
    report(found)


if __name__ == "__main__":
    main()
