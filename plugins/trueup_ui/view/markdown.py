"""A comparison as Markdown for a pull request; names cannot become markup there."""

from __future__ import annotations

import re

from trueup_ui.view.compare import ComparePage

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+!|~&@$])")


def escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(escaped("a|b <img> *c*"))
    a\|b \<img\> \*c\*
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def as_markdown(page: ComparePage, address: str) -> str:
    """Return a table of the pipelines, each decision in a sentence, and a link to the page."""
    lines = [
        f"**{escaped(page.asked.metric)}**, mean ± sd over seeds",
        "",
        "| pipeline | mean ± sd | seeds |",
        "|---|---|---|",
        *(
            f"| {escaped(arm.pipeline.name)} | {arm.text} | {len(arm.spread.values)} |"
            for arm in page.arms
        ),
        "",
    ]
    for i, row in enumerate(page.matrix):
        lines += [f"- {escaped(pair.sentence)}" for pair in row[i + 1 :] if pair is not None]
    return "\n".join([*lines, "", f"[trueup]({address})", ""])
