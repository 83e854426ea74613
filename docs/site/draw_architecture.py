"""Draw ``docs/architecture.svg`` from the imports: a room stands above every room that it imports.

``python docs/site/draw_architecture.py`` writes the picture anew; a test tells if it is current.
Of the arrows only those are drawn that no longer way already tells.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).parent))

from imports import CORE, ROOT, Graph, floors, imports_of_rooms

PICTURE = ROOT / "docs" / "architecture.svg"
LEAVE_OUT = {f"{CORE}.errors", f"{CORE}.redact", f"{CORE}.user_warning", f"{CORE}.arguments"}
"""Rooms that nearly everybody imports: their arrows would hide the others."""
WIDTH, STEP, BOX, HEIGHT = 980, 74, 128, 34
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2937; text-anchor: middle }
.core { fill: #eef2ff; stroke: #6366f1 } .plugin { fill: #ecfdf5; stroke: #10b981 }
path { fill: none; stroke: #94a3b8; stroke-width: 1.2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .core { fill: #1e1b4b } .plugin { fill: #064e3b } path { stroke: #64748b }
}
"""


def drawing() -> str:
    """Return the picture as SVG."""
    graph = _without_reached(
        {
            room: targets - LEAVE_OUT - {CORE}
            for room, targets in imports_of_rooms().items()
            if room not in LEAVE_OUT
        }
    )
    place = _places(graph)
    height = 30 + max(y for _, y in place.values()) + HEIGHT / 2
    arrows = [
        _arrow(place[room], place[target])
        for room in sorted(graph)
        for target in sorted(graph[room])
    ]
    boxes = [_box(room, *place[room]) for room in sorted(place)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">',
            "<title>Rooms of trueup; each stands above the rooms that it imports</title>",
            f"<style>{STYLE}</style>",
            *arrows,
            *boxes,
            "</svg>\n",
        ]
    )


def _without_reached(graph: Graph) -> Graph:
    """Leave out an arrow where another way leads to the same room."""

    def reached(room: str) -> set[str]:
        below = graph[room]
        return below.union(*(reached(target) for target in below))

    return {
        room: {
            target
            for target in targets
            if not any(target in reached(other) for other in targets - {target})
        }
        for room, targets in graph.items()
    }


def _places(graph: Graph) -> dict[str, tuple[float, float]]:
    """Return the middle of each room, a row for each floor; the plugins stand above the core."""
    heights = floors(graph)
    core_top = max(floor for room, floor in heights.items() if _is_core(room))
    plugins = floors({room: targets for room, targets in graph.items() if not _is_core(room)})
    rows = defaultdict(list)
    for room, floor in sorted(heights.items()):
        rows[floor if _is_core(room) else core_top + plugins[room]].append(room)
    place: dict[str, tuple[float, float]] = {}
    for floor, row in sorted(rows.items()):
        y = 30 + STEP * (max(rows) - floor) + HEIGHT / 2
        row.sort(key=lambda room: _mean([place[target][0] for target in graph[room]]))
        place |= {room: (WIDTH * (i + 0.5) / len(row), y) for i, room in enumerate(row)}
    return place


def _is_core(room: str) -> bool:
    return room.startswith(f"{CORE}.")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else WIDTH / 2


def _box(room: str, x: float, y: float) -> str:
    kind = "core" if _is_core(room) else "plugin"
    return (
        f'<rect class="{kind}" x="{x - BOX / 2:g}" y="{y - HEIGHT / 2:g}" rx="6" '
        f'width="{BOX}" height="{HEIGHT}"/>'
        f'<text x="{x:g}" y="{y + 4.5:g}">{escape(room.removeprefix(f"{CORE}."))}</text>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = start, end
    y0, y1 = y0 + HEIGHT / 2, y1 - HEIGHT / 2
    middle = (y0 + y1) / 2
    return f'<path d="M{x0:g} {y0:g} C{x0:g} {middle:g} {x1:g} {middle:g} {x1:g} {y1:g}"/>'


if __name__ == "__main__":
    PICTURE.write_text(drawing())
