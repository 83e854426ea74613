"""The tables of ``monitor_over_time.md``."""

from __future__ import annotations

import numpy as np
import pandas as pd
from monitor_over_time_cases import CASES

LEARNED_FROM = 5
TWOFOLD = np.log(2.0)
RULING = ("transformer 2: oil", "office: used")  # most of the batches that are off


def summary(rows: pd.DataFrame) -> pd.Series:
    """Return the figures of one case."""
    late = rows[rows["labels"] >= LEARNED_FROM]
    error = {
        name: (rows[name] - rows["realized"]).abs().mean()
        for name in ("learned", "own", "constant", "direct")
    }
    return pd.Series(
        {
            "batches": len(rows),
            "own coverage": held(rows, "own_low", "own_high"),
            "before labels": held(rows, "first_low", "first_high"),
            "from five": held(late, "low", "high"),
            "width": float(np.median(late["high"] / late["low"])) if len(late) else np.nan,
            "own / constant": error["own"] / error["constant"],
            "learned / constant": error["learned"] / error["constant"],
            "learned / DLE": error["learned"] / error["direct"],
        }
    )


def held(rows: pd.DataFrame, low: str, high: str) -> float:
    """Return the share of intervals that hold the realized error."""
    return float(((rows[low] <= rows["realized"]) & (rows["realized"] <= rows[high])).mean())


def flags(rows: pd.DataFrame, estimate: str, trusted: str) -> str:
    """Return counts, precision and recall of flags for estimates that are off by more than 2x."""
    off = np.log(rows[estimate] / rows["realized"]).abs() > TWOFOLD
    flagged = ~rows[trusted].astype(bool)
    hits = int((off & flagged).sum())
    precision = hits / max(int(flagged.sum()), 1)
    recall = hits / max(int(off.sum()), 1)
    return f"{int(off.sum())} | {int(flagged.sum())} | {hits} | {precision:.2f} | {recall:.2f}"


def text(rows: pd.DataFrame, seconds: float) -> str:
    """Return the page."""
    by_case = rows.groupby("case", sort=False).apply(summary, include_groups=False)
    chosen = rows.groupby("case", sort=False)["chosen_on"].first()
    groups = {
        "all": by_case,
        "mainly chosen on": by_case[chosen],
        "others": by_case[~chosen],
    }
    several = rows[rows["auc"] > 0.95]
    flags_chosen = rows["case"].isin([case.name for case in CASES[::2]])
    ruled = rows["case"].isin(RULING)
    lines = [
        "# Estimated error over time",
        "",
        f"`python benchmarks/monitor_over_time.py --data FOLDER`: {len(by_case)} streams of real "
        f"data in the order of time, {len(rows)} batches, one run ({seconds:.0f} s of one core). "
        "Sources and models: `monitor_over_time_cases.py`. Labels come one batch late. "
        "DLE is gradient boosting of the squared errors on features and prediction (NannyML's "
        "estimator); constant is the error of the reference. Coverage is that of 90% intervals: of "
        "the consensus alone (own), of the interval before any label, which the periods of the "
        "reference set, and of the learned one from five realized batches on. Width is high over "
        "low of the latter. Errors are mean absolute ones over all batches, the first included. "
        "The constants of the rule were chosen mainly on the streams marked C, with those of the "
        "others in sight but for New York and Chicago, which were run with the final rule only.",
        "",
        "| | aim | all | mainly chosen on | others |",
        "|---|---|---|---|---|",
        *_targets(groups),
        "",
        "## Flags",
        "",
        "A batch is off where the estimate is more than twice or less than half of what was "
        f"realized. {len(several)} of the {len(rows)} batches have a domain AUC above .95, which "
        "alone is no flag. The aim is a precision of .5 at a recall of .25.",
        "",
        "Four constants of the flags were chosen for precision on every other stream below, from "
        "the first on, among 1 to 5 ranges of the reference for an absurd value, .1 to .5 of "
        "the predictions outside, a limit of .7 to 1 for the log spread of the interval, and how "
        "many realized batches it takes until leaving the support is no flag by itself (0, 1, 2, "
        "5); of equal ones the nearest to what was there before. The counts by kind of all streams "
        "had been looked at before, so the others are not untouched; the share of predictions "
        "outside could only be judged on the others, as the chosen half has two such batches: "
        "it has the limit of the support.",
        "",
        "| | off | flagged | both | precision | recall |",
        "|---|---|---|---|---|---|",
        f"| learned estimate, its trust | {flags(rows, 'learned', 'trusted')} |",
        f"| the same, streams chosen on | {flags(rows[flags_chosen], 'learned', 'trusted')} |",
        f"| the same, the others | {flags(rows[~flags_chosen], 'learned', 'trusted')} |",
        f"| the same, without {' and '.join(RULING)} "
        f"| {flags(rows[~ruled], 'learned', 'trusted')} |",
        f"| estimate of the consensus, the same trust | {flags(rows, 'own', 'trusted')} |",
        f"| consensus alone | {flags(rows, 'own', 'trusted_before')} |",
        "",
        "## Streams",
        "",
        "C: constants of the rule were chosen mainly on it. L: the reference lies after the "
        "training rows; else it is drawn among them.",
        "",
        "| stream | | source | batches | own | before labels | from five | width "
        "| own / constant | learned / constant | learned / DLE |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *[_line(str(name), row) for name, row in by_case.iterrows()],
        "",
    ]
    return "\n".join(lines)


def _targets(groups: dict[str, pd.DataFrame]) -> list[str]:
    aims = (
        ("coverage from five realized batches on, mean", "from five", "at least .88", np.mean),
        ("coverage before any label, mean", "before labels", "at least .80", np.mean),
        ("coverage of the consensus alone, mean", "own coverage", "", np.mean),
        ("error / constant, geometric mean", "learned / constant", "at most .78", _geometric),
        ("error / DLE, geometric mean", "learned / DLE", "at most .92", _geometric),
        ("the same before learning: / constant", "own / constant", "", _geometric),
        ("width, geometric mean", "width", "", _geometric),
    )
    return [
        f"| {name} | {aim} | "
        + " | ".join(f"{mean(group[column].dropna()):.3f}" for group in groups.values())
        + " |"
        for name, column, aim, mean in aims
    ]


def _geometric(values: pd.Series) -> float:
    return float(np.exp(np.log(values).mean()))


def _line(name: str, row: pd.Series) -> str:
    case = next(one for one in CASES if one.name == name)
    marks = "C" * case.chosen_on + "L" * (case.reference == "later") + " Brier" * case.brier
    numbers = " | ".join(f"{value:.2f}" for value in row.iloc[1:])
    return f"| {name} | {marks} | {case.source} | {int(row.iloc[0])} | {numbers} |"
