"""The table that compares calibrators, as records and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.calibrators.judging.guard_decision import GuardDecision
from trueup.presentation import Line, Presented


@dataclass(frozen=True)
class CalibratorScore:
    """One row of the table, measured on the test rows.

    Attributes
    ----------
    name : str
        The calibrator.
    log_loss, brier_score, auc : float
        Of all test rows; log loss in nats.
    field_ece, field_rce : float
        Eq. 5 and Eq. 6 of the paper, as fractions.
    field_ece_floor : float
        What the Field-ECE of these predictions would be on average if they were the truth.
    log_loss_change, log_loss_change_standard_error : float
        Log loss minus that of the base, paired by rows.
    kept : bool or None
        What the guard says from the development rows alone; None for models that are not guarded.
    decision : GuardDecision or None
        The guard's decision, with what each origin said.
    note : str
        What the numbers alone don't say: that the later rows contradict the guard, or that another
        calibrator predicts the same.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(0.1, 0.6, 2_000), rng.choice(["news", "shop"], 2_000)
    >>> click = rng.random(2_000) < p
    >>> table = compare_calibrators(click, p, {"site": site}, field="site", shuffle=True)
    >>> 0.4 < table.scores[0].log_loss < 0.7
    True
    """

    name: str
    log_loss: float
    brier_score: float
    field_ece: float
    field_ece_floor: float
    field_rce: float
    auc: float
    log_loss_change: float
    log_loss_change_standard_error: float
    kept: bool | None
    decision: GuardDecision | None = None
    note: str = ""


@dataclass(frozen=True)
class CalibratorTable(Presented):
    """Calibrators on one data set.

    Attributes
    ----------
    scores : tuple of CalibratorScore
        The base first.
    field : str
        The field of the field-level errors.
    epsilon : float
        Of the relative error.
    n_dev, n_test : int
        Rows that fitted and rows that were scored.
    by_chance : bool
        Whether the scored rows were drawn at random, and are not the later ones.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(0.1, 0.6, 2_000), rng.choice(["news", "shop"], 2_000)
    >>> click = rng.random(2_000) < p
    >>> table = compare_calibrators(click, p, {"site": site}, field="site", shuffle=True)
    >>> [score.name for score in table.scores][:3]
    ['base', 'shift', 'temperature']
    """

    scores: tuple[CalibratorScore, ...]
    field: str
    epsilon: float
    n_dev: int
    n_test: int
    by_chance: bool = False

    def decisions(self) -> dict[str, GuardDecision]:
        """Return what the guard decided, by calibrator."""
        return {score.name: score.decision for score in self.scores if score.decision is not None}

    def summary(self) -> str:
        """Return what is compared and kept."""
        kept = [score.name for score in self.scores if score.kept]
        guard = f"; the guard keeps {', '.join(kept)}" if kept else "; the guard keeps none"
        judged = any(score.kept is not None for score in self.scores)
        rows = "random" if self.by_chance else "later"
        return (
            f"Change of the log loss on {self.n_test:,} {rows} rows, with its 95% interval; "
            f"below 0 is better{guard if judged else ''}."
        )

    def lines(self) -> tuple[Line, ...]:
        """Return the change of the log loss by each calibrator, without the base."""
        return tuple(_line(score) for score in self.scores[1:]) or (_line(self.scores[0]),)

    def to_markdown(self) -> str:
        """Return the table as Markdown; its last head names the rows that the guard judged."""
        dev, test = ("random", "other random") if self.by_chance else ("earlier", "later")
        head = (
            f"| method, on {self.n_test} {test} rows | log loss | change ± SE | Brier "
            f"| Field-ECE (floor) | Field-RCE | AUC | guard, on {self.n_dev} {dev} rows |\n"
            "|---|---|---|---|---|---|---|---|\n"
        )
        return head + "".join(_markdown_row(score) for score in self.scores)


_NORMAL_95 = 1.959964


def _line(score: CalibratorScore) -> Line:
    change, half = score.log_loss_change, _NORMAL_95 * score.log_loss_change_standard_error
    return Line(score.name, change, change - half, change + half)


_VERDICTS = {None: "", True: "kept", False: "not kept"}


def _markdown_row(score: CalibratorScore) -> str:
    cells = (
        score.name,
        f"{score.log_loss:.5f}",
        f"{score.log_loss_change:+.5f} ± {score.log_loss_change_standard_error:.5f}",
        f"{score.brier_score:.5f}",
        f"{score.field_ece:.4f} ({score.field_ece_floor:.4f})",
        f"{100 * score.field_rce:.2f}%",
        f"{score.auc:.4f}",
        "; ".join(filter(None, (_VERDICTS[score.kept], score.note))),
    )
    return f"| {' | '.join(cells)} |\n"
