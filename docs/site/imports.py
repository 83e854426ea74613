"""Who imports whom, read from the source: for the picture and the architecture test."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = "trueup"
Graph = dict[str, set[str]]


def packages() -> dict[str, Path]:
    """Return the folder of each of our packages."""
    found = [ROOT / "src" / CORE, *sorted((ROOT / "plugins").glob("trueup_*"))]
    return {folder.name: folder for folder in found}


def modules() -> dict[str, Path]:
    """Return the file of each module, by its dotted name."""
    return {
        ".".join((package, *_parts(file.relative_to(folder)))): file
        for package, folder in packages().items()
        for file in sorted(folder.rglob("*.py"))
    }


def imports_of_modules() -> Graph:
    """Return what each module imports of ours; imports for types and inside functions count too."""
    known = modules()
    return {
        name: {
            target
            for node in ast.walk(ast.parse(file.read_text()))
            for target in _targets(node, known)
            if target != name
        }
        for name, file in known.items()
    }


def imports_of_rooms() -> Graph:
    """Return the arrows between rooms: the folders and files of the core, and the plugins."""
    rooms: Graph = {}
    for module, targets in imports_of_modules().items():
        arrows = rooms.setdefault(room_of(module), set())
        arrows |= {room_of(target) for target in targets}
    return {room: targets - {room} for room, targets in rooms.items() if room != CORE}


def room_of(module: str) -> str:
    """Return the room of a module: a plugin is one room, the core has one for each folder."""
    package, _, rest = module.partition(".")
    return f"{CORE}.{rest.partition('.')[0]}" if package == CORE and rest else package


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of names that import each other in a loop, found by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(graph.get(name, ())):
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def floors(graph: Graph) -> dict[str, int]:
    """Return the floor of each name: one above the highest that it imports; the ground is 1."""
    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            below = [height(target) for target in graph.get(name, ()) if target in graph]
            heights[name] = 1 + max(below, default=0)
        return heights[name]

    return {name: height(name) for name in graph}


def _parts(file: Path) -> tuple[str, ...]:
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _targets(node: ast.AST, known: dict[str, Path]) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & known.keys()
    if not isinstance(node, ast.ImportFrom) or node.module not in known:
        return set()
    names = {f"{node.module}.{alias.name}" for alias in node.names}
    return names & known.keys() or {node.module}
