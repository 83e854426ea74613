"""A result as a sentence, a small table and a picture, in a terminal and in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.extras import needed_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


class Line(NamedTuple):
    """One number of a result; ``low`` and ``high`` are None where it has no interval."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


class Presented:
    """A result that is printed as a sentence and a table, and drawn by :meth:`plot`.

    A subclass says the sentence, and the numbers that are worth a line.
    """

    @abstractmethod
    def summary(self) -> str:
        """Return what the result says, in a sentence."""

    @abstractmethod
    def lines(self) -> Sequence[Line]:
        """Return the numbers of the table and the picture, the headline first."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each number with its interval.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Axes
            With the sentence as its title.

        Raises
        ------
        ImportError
            If matplotlib is missing; the message has the command that installs it.
        """
        lines = self.lines()
        ax = ax or _new_axes(len(lines))
        for place, line in enumerate(reversed(lines)):
            if line.low is not None and line.high is not None:
                ax.plot([line.low, line.high], [place, place], color="#64748b", linewidth=2)
            ax.plot([line.value], [place], "o", color="#4f46e5")
        ax.set_yticks(range(len(lines)), [line.name for line in reversed(lines)])
        ax.set_ylim(-0.5, len(lines) - 0.5)
        ax.set_title(self.summary(), loc="left", fontsize="small", wrap=True)
        return ax

    def __str__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td><td>{escape(interval)}</td></tr>"
            for name, value, interval in _cells(self.lines())
        ]
        return f"<p>{escape(self.summary())}</p><table>{''.join(rows)}</table>"


def text_of(result: Presented) -> str:
    """Return the sentence and the table below it, columns aligned."""
    cells = _cells(result.lines())
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    table = [
        "  ".join(
            [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].ljust(widths[2])]
        ).rstrip()
        for row in cells
    ]
    return "\n".join([result.summary(), "", *table])


def _cells(lines: Sequence[Line]) -> list[tuple[str, str, str]]:
    return [
        (
            line.name,
            f"{line.value:.5g}",
            "" if line.low is None else f"[{line.low:.5g}, {line.high:.5g}]",
        )
        for line in lines
    ]


def _new_axes(n_lines: int) -> Any:
    with needed_by("plot"):
        from matplotlib.pyplot import subplots
    return subplots(figsize=(7, 1.2 + 0.3 * n_lines), layout="constrained")[1]
