"""What ``trueup compare`` prints: text, one JSON object, or a comment for a pull request."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from trueup_mlflow.compare.compare_runs import LoggedComparison

Outcome = Literal["passed", "failed", "inconclusive"]


@dataclass(frozen=True)
class Decision:
    """One candidate on one metric: the logged decision, the outcome of the gate, a figure."""

    candidate: str
    baseline: str
    metric: str
    logged: LoggedComparison
    outcome: Outcome
    figure: str

    @property
    def sentence(self) -> str:
        return self.logged.comparison.sentence(self.candidate, self.baseline)

    @property
    def told(self) -> str:
        """The same, said of its metric."""
        return f"{self.metric}: {self.sentence}"


def as_text(decisions: Sequence[Decision], gate: str, outcome: Outcome) -> str:
    """Return a line per decision, then the gate and the runs."""
    alone = len(decisions) == 1
    lines = [d.sentence if alone else d.told for d in decisions]
    lines += [*dict.fromkeys(d.logged.note for d in decisions if d.logged.note)]
    lines += [*_remarks(decisions), f"{gate}: {outcome}"]
    lines += [f"logged to run {d.logged.run_id}" for d in decisions]
    return "\n".join(lines)


def as_json(decisions: Sequence[Decision], gate: str, outcome: Outcome) -> str:  # noqa: ARG001 - one signature
    """Return the content of one decision, or of all under ``decisions``."""
    contents = [_content(decision) for decision in decisions]
    if len(contents) == 1:
        return json.dumps(contents[0], indent=2, allow_nan=False)
    whole = {"gate": outcome, "remarks": [*_remarks(decisions)], "decisions": contents}
    return json.dumps(whole, indent=2, allow_nan=False)


def markdown(decisions: Sequence[Decision], gate: str, outcome: Outcome) -> str:
    """Return a comment for a pull request: the verdict, a table, then what it rests on."""
    leading = _leading(decisions)
    of_one = len({decision.metric for decision in decisions}) == 1
    head = "| candidate | metric | difference | interval | wins | pairs | verdict | gate | figure |"
    lines = [
        f"**{gate}: {outcome}.** {_cell(leading.sentence if of_one else leading.told)}",
        "",
        head,
        "|---" * (head.count("|") - 1) + "|",
        *(_row(decision) for decision in decisions),
        "",
        *(f"- {_cell(decision.told)}" for decision in decisions if decision is not leading),
        *(f"- {_cell(line)}" for line in _basis(decisions)),
    ]
    return "\n".join(lines)


def _leading(decisions: Sequence[Decision]) -> Decision:
    """Return the decision that the first line tells: one that passed, of the best mean."""
    order: dict[Outcome, int] = {"passed": 0, "inconclusive": 1, "failed": 2}

    def place(decision: Decision) -> tuple[int, float]:
        comparison = decision.logged.comparison
        sign = -1.0 if comparison.greater_is_better else 1.0
        return order[decision.outcome], sign * comparison.difference

    first = [decision for decision in decisions if decision.metric == decisions[0].metric]
    return min(first, key=place)


def _row(decision: Decision) -> str:
    c = decision.logged.comparison
    cells = (
        decision.candidate,
        f"`{decision.metric}`",
        f"{c.difference:+.3g}",
        f"[{_end(c.low)}, {_end(c.high)}]",
        f"{c.p_better:.0%} [{c.p_better_low:.0%}, {c.p_better_high:.0%}]",
        str(c.n_pairs),
        {"candidate": decision.candidate, "baseline": decision.baseline}.get(c.verdict, c.verdict),
        decision.outcome,
    )
    return f"| {' | '.join([*map(_cell, cells), decision.figure])} |"


def _basis(decisions: Sequence[Decision]) -> Iterator[str]:
    c = decisions[0].logged.comparison
    direction = "higher" if c.greater_is_better else "lower"
    yield (
        f"difference: candidate - {decisions[0].baseline}, {direction} is better; its interval "
        f"({100.0 * c.confidence_level:.4g}%) holds over seeds at any time, with these rows"
    )
    yield f"wins: share of {'pairs of one seed' if c.estimand == 'paired' else 'all pairs'}"
    yield from dict.fromkeys(d.logged.note for d in decisions if d.logged.note)
    yield from _remarks(decisions)


def _remarks(decisions: Sequence[Decision]) -> Iterator[str]:
    """Say what choosing costs, and which of two metrics has less noise."""
    k = len({decision.candidate for decision in decisions})
    if k > 1:
        level = decisions[0].logged.comparison.confidence_level
        yield (
            f"{k} candidates: each interval is at {100.0 * level:.4g}%, so that all hold together "
            "and the best may be chosen"
        )
    for vanilla in decisions:
        for other in decisions:
            same = other.candidate == vanilla.candidate
            if same and other.metric == f"calibrated_{vanilla.metric}":
                yield _noise(vanilla, other, k)


def _noise(vanilla: Decision, calibrated: Decision, k: int) -> str:
    from trueup.decide.both_metrics import both_metrics

    both = both_metrics(vanilla.logged.comparison, calibrated.logged.comparison)
    sentence = both.noise_sentence()
    return sentence if k == 1 else f"{vanilla.candidate}: {sentence}"


def _content(decision: Decision) -> dict[str, Any]:
    return {
        **decision.logged.comparison.to_dict(),
        "gate": decision.outcome,
        "sentence": decision.sentence,
        "note": decision.logged.note,
        "run_id": decision.logged.run_id,
        "metric": decision.metric,
        "candidate": decision.candidate,
        "baseline": decision.baseline,
    }


def _end(value: float) -> str:
    return f"{value:+.3g}" if math.isfinite(value) else "open"


def _cell(text: str) -> str:
    """Keep a name of the user's from ending a cell or becoming markup."""
    escaped = text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
    return escaped.replace("@", "@\u200b")
