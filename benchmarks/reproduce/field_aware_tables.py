"""The field-aware calibration tables as Markdown: methods by data set, and the claims counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from math import isnan, sqrt
from statistics import fmean, stdev

from field_aware_data import Table

from trueup.calibrators import CalibratorScore

UNIVARIATE = ("histogram", "isotonic", "platt", "ilps", "ilps (paper's SGD)")
FIELD_AWARE = ("neural, z only", "neural", "field offset, z only", "field offset")

Numbers = dict[str, dict[str, float]]


def over_seeds(
    runs: list[list[CalibratorScore]], statistic: Callable[[list[float]], float]
) -> Numbers:
    """Return a statistic over seeds of every number of every method."""
    texts = ("name", "decision", "note")
    names = [field.name for field in fields(CalibratorScore) if field.name not in texts]
    return {
        same[0].name: {
            name: statistic([float(getattr(score, name) or 0.0) for score in same])
            for name in names
        }
        for same in zip(*runs, strict=True)
    }


def standard_error(values: list[float]) -> float:
    """Return the standard error of the mean over seeds, NaN for one seed."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else float("nan")


def markdown(name: str, table: Table, runs: list[list[CalibratorScore]]) -> str:
    """Return one data set's table; changes are paired with the base."""
    train, dev, test = table.parts()
    lines = [
        f"## {name}",
        f"{len(train)} / {len(dev)} / {len(test)} rows for training / development / test by "
        f"{table.ordered_by}, positives {table.y[train].mean():.3f} / {table.y[dev].mean():.3f} / "
        f"{table.y[test].mean():.3f}; field `{table.field}`, "
        f"{len(set(table.columns[table.field].tolist()))} values; mean over {len(runs)} seeds.",
        "",
        "| method | log loss | change ± SE of rows ± SE of seeds | Brier "
        "| Field-ECE ± SE of seeds (floor) | Field-RCE | AUC | guard keeps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    means, errors = over_seeds(runs, fmean), over_seeds(runs, standard_error)
    lines += [markdown_row(method, means[method], errors[method]) for method in means]
    return "\n".join(lines) + "\n"


def markdown_row(method: str, mean: dict[str, float], error: dict[str, float]) -> str:
    """Return the row of one method; ``kept`` is the share of seeds."""
    guarded = method in UNIVARIATE or method.startswith(("neural", "field"))
    cells = (
        method,
        f"{mean['log_loss']:.5f}",
        f"{mean['log_loss_change']:+.5f} ± {mean['log_loss_change_standard_error']:.5f} "
        f"± {_shown(error['log_loss_change'], '.5f')}",
        f"{mean['brier_score']:.5f}",
        f"{mean['field_ece']:.4f} ± {_shown(error['field_ece'], '.4f')} "
        f"({mean['field_ece_floor']:.4f})",
        f"{100 * mean['field_rce']:.2f}%",
        f"{mean['auc']:.4f}",
        f"{100 * mean['kept']:.0f}%" if guarded and "dev ->" not in method else "",
    )
    return f"| {' | '.join(cells)} |"


def _shown(error: float, form: str) -> str:
    """Return an error over seeds; one seed has none."""
    return "-" if isnan(error) else f"{error:{form}}"


def claims(all_means: dict[str, Numbers]) -> str:
    """Return on how many data sets each claim held."""
    sets = list(all_means)

    def held(text: str, holds: Iterable[bool]) -> str:
        which = [name for name, true in zip(sets, holds, strict=True) if true]
        return f"| {text} | {len(which)} of {len(sets)} | {', '.join(which) or 'none'} |"

    def better(method: str, others: tuple[str, ...], key: str = "field_ece") -> list[bool]:
        return [m[method][key] < min(m[o][key] for o in others) for m in all_means.values()]

    def no_worse_than_platt(method: str) -> list[bool]:
        return [
            m[method]["log_loss"]
            <= m["platt"]["log_loss"] + m["platt"]["log_loss_change_standard_error"]
            for m in all_means.values()
        ]

    lines = ["| claim | held on | which |", "|---|---|---|"]
    for method in FIELD_AWARE:
        lines.append(
            held(f"{method}: Field-ECE below every univariate", better(method, UNIVARIATE))
        )
        lines.append(held(f"{method}: log loss at most Platt + 1 SE", no_worse_than_platt(method)))
    pairs = [
        ("neural: Field-RCE below the base", "neural", ("base",), "field_rce"),
        ("base_updated: AUC above the base (Observation 1)", "base", ("base_updated",), "auc"),
        (
            "base_updated: Field-ECE above the base (Observation 1)",
            "base",
            ("base_updated",),
            "field_ece",
        ),
        ("ilps: log loss below Platt (5.5)", "ilps", ("platt",), "log_loss"),
        ("ilps: Field-RCE below Platt (5.5)", "ilps", ("platt",), "field_rce"),
        ("neural: log loss below base_updated (5.4)", "neural", ("base_updated",), "log_loss"),
        ("neural: log loss below ilps (5.6)", "neural", ("ilps",), "log_loss"),
        ("neural: Field-RCE below z only (5.7)", "neural", ("neural, z only",), "field_rce"),
        (
            "swapped neural: log loss below swapped ilps (5.8)",
            "neural (dev -> train)",
            ("ilps (dev -> train)",),
            "log_loss",
        ),
    ]
    lines += [held(text, better(method, others, key)) for text, method, others, key in pairs]
    lines.append(held("neural: AUC above Platt (5.4)", better("platt", ("neural",), "auc")))
    return "\n".join(lines) + "\n"
