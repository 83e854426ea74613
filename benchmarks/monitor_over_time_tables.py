"""The tables of ``monitor_over_time.md``."""

from __future__ import annotations

import numpy as np
import pandas as pd
from monitor_over_time_cases import CASES
from monitor_over_time_fresh import FRESH

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


def text(rows: pd.DataFrame) -> str:
    """Return the page."""
    squared = rows[rows["metric"].isin(["mse", "brier_score"])]
    known, fresh = squared[~squared["fresh"]], squared[squared["fresh"]]
    cases = known["case"].nunique()
    lines = [
        "# Estimated error over time",
        "",
        f"`python benchmarks/monitor_over_time.py --data FOLDER --raw FOLDER`: {cases} streams of "
        f"real data in the order of time, {len(known)} batches, and {fresh['case'].nunique()} "
        f"fresh ones with {len(fresh)}, one run. "
        "Sources and models: `monitor_over_time_cases.py` and `_fresh.py`. Labels come one batch "
        "late. DLE is gradient boosting of the errors on features and prediction (NannyML's "
        "estimator); constant is the error of the reference. Coverage is that of 90% intervals: of "
        "the consensus alone (own), of the interval before any label, which the periods of the "
        "reference set, and of the learned one from five realized batches on. Width is high over "
        "low of the latter. Errors are mean absolute ones over all batches, the first included. "
        "How the constants were chosen, and on which streams: `monitor_over_time_choices.md`.",
        "",
        "Mean squared error, and Brier score where the target is 0 or 1:",
        "",
        *_targets(
            {
                "all": known,
                "mainly chosen on": known[known["chosen_on"]],
                "others": known[~known["chosen_on"]],
                "fresh": fresh,
            }
        ),
        "",
        f"On the fresh streams the estimate is {_lost(fresh)}.",
        "",
        "## Other metrics",
        "",
        "The same streams, MAE in place of the MSE and log loss in place of the Brier score; the "
        "constants of the rule are those that were chosen for squared errors.",
        "",
        *_targets(
            {
                "MAE": _of(rows, "mae", fresh=False),
                "MAE, fresh": _of(rows, "mae", fresh=True),
                "log loss": _of(rows, "log_loss", fresh=False),
                "log loss, fresh": _of(rows, "log_loss", fresh=True),
            }
        ),
        "",
        f"By MAE the estimate is {_lost(rows[rows['metric'] == 'mae'])}; by log loss it is "
        f"{_lost(rows[rows['metric'] == 'log_loss'])}.",
        "",
        *_flags(known, fresh, rows),
        "",
        "## Streams",
        "",
        "C: constants of the rule were chosen mainly on it. L: the reference lies after the "
        "training rows; else it is drawn among them. F: fresh.",
        "",
        *_streams(squared),
        "",
        "The same by MAE or log loss:",
        "",
        *_streams(rows[~rows.index.isin(squared.index)]),
        "",
    ]
    return "\n".join(lines)


def by_case(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each case."""
    return rows.groupby("case", sort=False).apply(summary, include_groups=False)


def _of(rows: pd.DataFrame, metric: str, *, fresh: bool) -> pd.DataFrame:
    return rows[(rows["metric"] == metric) & (rows["fresh"] == fresh)]


def _lost(rows: pd.DataFrame) -> str:
    """Say on which streams the estimate is no better than a simple one."""
    found = by_case(rows)
    return " and ".join(
        f"worse than {name} on {_names(found[f'learned / {column}'])}"
        for name, column in (("the constant", "constant"), ("DLE", "DLE"))
    )


def _names(ratio: pd.Series) -> str:
    worse = ratio[ratio > 1.0].sort_values(ascending=False)
    names = ", ".join(f"{name} {value:.2f}" for name, value in worse.items())
    return f"{len(worse)} of {len(ratio)} ({names})"


def _flags(known: pd.DataFrame, fresh: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    several = int((known["auc"] > 0.95).sum())
    chosen_on = known["case"].isin([case.name for case in CASES[::2]])
    parts = {
        "learned estimate, its trust": known,
        "the same, streams chosen on": known[chosen_on],
        "the same, the others": known[~chosen_on],
        f"the same, without {' and '.join(RULING)}": known[~known["case"].isin(RULING)],
        "the same, fresh streams": fresh,
        "the same, by MAE, all streams": rows[rows["metric"] == "mae"],
        "the same, by log loss, all streams": rows[rows["metric"] == "log_loss"],
    }
    return [
        "## Flags",
        "",
        "A batch is off where the estimate is more than twice or less than half of what was "
        f"realized. {several} of the {len(known)} batches have a domain AUC above .95, which "
        "alone is no flag. The aim is a precision of .5 at a recall of .25.",
        "",
        "| | off | flagged | both | precision | recall |",
        "|---|---|---|---|---|---|",
        *[f"| {name} | {flags(part, 'learned', 'trusted')} |" for name, part in parts.items()],
        f"| estimate of the consensus, the same trust | {flags(known, 'own', 'trusted')} |",
        f"| consensus alone | {flags(known, 'own', 'trusted_before')} |",
        f"| consensus alone, fresh streams | {flags(fresh, 'own', 'trusted_before')} |",
        "",
        "The flags of the fresh streams are on "
        f"{_counted(fresh)}; the other streams have none, also where a batch is off.",
    ]


def _counted(rows: pd.DataFrame) -> str:
    flagged = rows[~rows["trusted"].astype(bool)].groupby("case", sort=False).size()
    return " and ".join(f"{name} ({n})" for name, n in flagged.items())


def _streams(rows: pd.DataFrame) -> list[str]:
    return [
        "| stream | | source | batches | own | before labels | from five | width "
        "| own / constant | learned / constant | learned / DLE |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *[_line(str(name), row) for name, row in by_case(rows).iterrows()],
    ]


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
    found = {name: by_case(rows) for name, rows in groups.items()}
    return [
        f"| | aim | {' | '.join(f'{name} ({len(part)})' for name, part in found.items())} |",
        "|---" * (2 + len(found)) + "|",
        *(
            f"| {name} | {aim} | "
            + " | ".join(f"{mean(part[column].dropna()):.3f}" for part in found.values())
            + " |"
            for name, column, aim, mean in aims
        ),
    ]


def _geometric(values: pd.Series) -> float:
    return float(np.exp(np.log(values).mean()))


def _line(name: str, row: pd.Series) -> str:
    case = next(one for one in (*CASES, *FRESH) if one.name == name)
    marks = "C" * case.chosen_on + "L" * (case.reference == "later") + "F" * (case in FRESH)
    marks += " 0/1" * case.brier
    numbers = " | ".join(f"{value:.2f}" for value in row.iloc[1:])
    return f"| {name} | {marks} | {case.source} | {int(row.iloc[0])} | {numbers} |"
