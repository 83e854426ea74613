"""The report of ``trueup tune report``: as text, as JSON and as a figure."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from trueup.replace_file import replace_file_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from trueup_optuna import BestConfig, Confirmation, StudyReport

_SHOWN = 15


def report_text(report: StudyReport) -> str:
    """Return the report for a terminal."""
    best = report.best
    lines = [
        f"study {report.name}: {len(report.rows)} configurations, {report.search_trainings} "
        f"trainings in the search, {report.final_trainings} in the finals",
        f"selected: trial {best.trial.number}, {best.mean:.6g} ± {best.standard_error:.2g} "
        f"over {best.n_seeds} seeds; parameters {best.trial.params}",
        f"Optuna's best value: {best.optimistic_value:.6g}, {_beside_the_mean(best)}",
        *_metric_lines(report),
        *_vanilla_lines(report),
        *_left_out_lines(report),
        "",
        "  trial  seeds  mean ± standard error     P(best)  eliminated by",
        *_row_lines(report),
        "",
        *_legend(report),
    ]
    return "\n".join(lines)


def _beside_the_mean(best: BestConfig) -> str:
    if math.isclose(best.optimistic_value, best.mean, rel_tol=1e-9, abs_tol=1e-12):
        return "the same as the selected mean"
    if best.optimism < 0.0:
        return f"{-best.optimism:.2g} worse than the selected mean"
    return f"{best.optimism:.2g} better than the selected mean: optimistic, from a lucky seed"


def _legend(report: StudyReport) -> list[str]:
    from trueup_optuna.study.study_report import FINALIST_SEEDS

    shares = (
        f"P(best): chance of the best true mean among those in the race with at least "
        f"{FINALIST_SEEDS} seeds; empty for all others."
    )
    gone = (
        "eliminated by: out of the race, because that trial was better under the same seeds, beyond"
        " what --alpha allows for chance."
    )
    return [shares, gone] if report.eliminations else [shares]


def _metric_lines(report: StudyReport) -> list[str]:
    if report.goes_by_reason is None:
        return []
    return [f"goes by the {report.goes_by} metric: {report.goes_by_reason}"]


def _vanilla_lines(report: StudyReport) -> list[str]:
    vanilla = report.vanilla
    if vanilla is None:
        return ["vanilla: not recorded, because train returned numbers"]
    ratio = f"seed sd {vanilla.seed_sd:.2g} calibrated, {vanilla.vanilla_seed_sd:.2g} vanilla"
    if vanilla.same:
        return [f"vanilla: would have chosen the same trial; {ratio}"]
    return [
        f"vanilla: would have chosen trial {vanilla.number}, which costs {vanilla.cost:.2g} "
        f"± {vanilla.cost_standard_error:.2g} of the calibrated metric; {ratio}"
    ]


_LEFT_OUT = {
    "failed": "a seed failed",
    "stopped": "the epoch pruner stopped them",
    "infeasible": "they break a constraint",
}


def _left_out_lines(report: StudyReport) -> list[str]:
    """Return how many trials have no place in the ranking, and why the last of each kind has."""
    lines = []
    for kind, words in _LEFT_OUT.items():
        numbers = [number for number, why in report.left_out.items() if why.kind == kind]
        if numbers:
            last = " ".join(report.left_out[numbers[-1]].reason.split())
            lines.append(
                f"left out because {words}: {len(numbers)}, the last trial {numbers[-1]}: {last}"
            )
    return lines


def _row_lines(report: StudyReport) -> list[str]:
    lines = []
    for row in report.rows[:_SHOWN]:
        chance = report.p_best.get(row.number)
        out = "" if row.eliminated_by is None else f"trial {row.eliminated_by}"
        value = f"{row.mean:.6g} ± {row.standard_error:.2g}"
        share = "" if chance is None else f"{chance:.2f}"
        lines.append(
            f"  {row.number:5d}  {row.n_seeds:5d}  {value:24s}  {share:>7s}  {out}".rstrip()
        )
    hidden = len(report.rows) - _SHOWN
    return lines + ([f"  ... and {hidden} more"] if hidden > 0 else [])


def confirmation_text(confirmed: Confirmation) -> str:
    """Return the confirmed value in a sentence or two."""
    text = (
        f"confirmed on {confirmed.n} fresh seeds: {confirmed.mean:.6g} "
        f"[{confirmed.low:.6g}, {confirmed.high:.6g}]"
    )
    if confirmed.difference is None or confirmed.p_better is None:
        return text
    return (
        f"{text}\nagainst {confirmed.rival_name}: difference {confirmed.difference:.3g} "
        f"[{confirmed.difference_low:.3g}, {confirmed.difference_high:.3g}], better under "
        f"{confirmed.p_better:.0%} of the seeds"
    )


def report_json(report: StudyReport) -> dict[str, Any]:
    """Return the report as plain values."""
    best = report.best
    return {
        "study": report.name,
        "selected": {
            "number": best.trial.number,
            "params": best.trial.params,
            "mean": best.mean,
            "standard_error": best.standard_error,
            "n_seeds": best.n_seeds,
            "optimistic_value": best.optimistic_value,
        },
        "goes_by": report.goes_by,
        "goes_by_reason": report.goes_by_reason,
        "search_trainings": report.search_trainings,
        "final_trainings": report.final_trainings,
        "vanilla": None if report.vanilla is None else asdict(report.vanilla),
        "p_best": report.p_best,
        "left_out": {number: asdict(why) for number, why in report.left_out.items()},
        "rows": [asdict(row) for row in report.rows],
    }


def save_figure(report: StudyReport, path: Path) -> None:
    """Draw seeds, finalists, and calibrated against vanilla; the suffix gives the format."""
    from matplotlib.figure import Figure

    panels = [_draw_seeds, _draw_posterior]
    if report.vanilla is not None:
        panels.append(_draw_vanilla)
    figure = Figure(figsize=(5.5 * len(panels), 4), layout="constrained")
    for axes, draw in zip(figure.subplots(1, len(panels)), panels, strict=True):
        draw(axes, report)
    replace_file_by(path, figure.savefig)


def _draw_seeds(axes: Axes, report: StudyReport) -> None:
    from matplotlib.ticker import MaxNLocator

    for gone, color, label in ((False, "tab:blue", "in the race"), (True, "0.7", "eliminated")):
        rows = [row for row in report.rows if (row.eliminated_by is not None) == gone]
        if rows:
            axes.bar([r.number for r in rows], [r.n_seeds for r in rows], color=color, label=label)
    for row in report.rows:
        if row.eliminated_by is not None:
            axes.annotate(
                f"by {row.eliminated_by}",
                (row.number, row.n_seeds),
                rotation=90,
                fontsize=6,
                ha="center",
                va="bottom",
            )
    axes.set(xlabel="trial", ylabel="seeds", title="Where the seeds went")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.margins(y=0.15)  # room for the legend
    axes.legend(loc="upper right", ncols=2, fontsize=7)


def _draw_posterior(axes: Axes, report: StudyReport) -> None:
    from trueup_optuna.study.study_report import FINALIST_SEEDS

    rows = [row for row in report.rows if row.number in report.p_best]
    for row in rows[:8]:
        grid = row.mean + row.standard_error * np.linspace(-4.0, 4.0, 161)
        label = f"trial {row.number}: P(best) = {report.p_best[row.number]:.2f}"
        axes.plot(grid, norm.pdf(grid, row.mean, row.standard_error), label=label)
    axes.set(xlabel="true mean of the metric", ylabel="density", title="Finalists")
    if rows:
        axes.legend(fontsize=7)
    else:
        text = f"no configuration has {FINALIST_SEEDS} seeds yet"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center")
        axes.set(xticks=[], yticks=[])


def _draw_vanilla(axes: Axes, report: StudyReport) -> None:
    """Draw both means of each configuration; the axes show the half that is nearest to the best."""
    assert report.vanilla is not None
    numbers = [row.number for row in report.rows]
    calibrated = np.array([np.mean([s.value for s in row.records]) for row in report.rows])
    vanilla = np.array([np.mean([s.vanilla for s in row.records]) for row in report.rows])
    area = [10 + 6 * row.n_seeds for row in report.rows]
    axes.scatter(vanilla, calibrated, s=area, color="tab:blue", alpha=0.5)
    for number, marker, color, who in (
        (report.best.trial.number, "o", "black", "selected"),
        (report.vanilla.number, "s", "tab:red", "choice of the vanilla metric"),
    ):
        place = numbers.index(number)
        style: dict[str, Any] = {"marker": marker, "mec": color, "mfc": "none", "ms": 12, "ls": ""}
        axes.plot(vanilla[place], calibrated[place], label=f"trial {number}: {who}", **style)
    axes.axline((calibrated[0], calibrated[0]), slope=1.0, color="0.7", lw=1, label="equal")
    best = numbers.index(report.best.trial.number)
    distance = np.abs(calibrated - calibrated[best])
    near = distance <= np.median(distance)
    near |= np.isin(numbers, [report.best.trial.number, report.vanilla.number])
    axes.set(
        xlabel="vanilla mean",
        ylabel="calibrated mean",
        title=f"Calibrated against vanilla, best {near.sum()} of {len(near)}",
        xlim=_around(vanilla[near]),
        ylim=_around(calibrated[near]),
    )
    axes.legend(fontsize=7, labelspacing=1.2)


def _around(values: NDArray[np.float64]) -> tuple[float, float]:
    margin = 0.15 * max(float(np.ptp(values)), 1e-9)
    return float(values.min()) - margin, float(values.max()) + margin
