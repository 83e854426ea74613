"""What the site gains when it is built: reference pages, and files from outside of ``docs``.

The pages in ``docs`` are written to be read in the repository, so they link to files beside it.
Markdown files and pictures that are linked to become pages of the site; a link to anything
else (a folder, a script) loses its target and stays as text.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)]*)?\)")
OUTSIDE = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "benchmarks/**/*.md", "benchmarks/**/*.png", "examples/data/*.md")
    for path in sorted(ROOT.glob(pattern))
]
REFERENCE = {
    "python": [
        ("trueup", "src/trueup/__init__.py"),
        ("trueup.comparison", "src/trueup/comparison.py"),
        ("trueup.calibrators", "src/trueup/calibrators/__init__.py"),
        ("trueup.monitoring", "src/trueup/monitoring/__init__.py"),
        ("trueup.resampling", "src/trueup/resampling/__init__.py"),
        ("trueup.summaries", "src/trueup/summaries/__init__.py"),
        ("trueup.losses", "src/trueup/losses/__init__.py"),
    ],
    "mlflow": [
        ("trueup_mlflow", "plugins/trueup_mlflow/__init__.py"),
        ("trueup_mlflow.monitor", "plugins/trueup_mlflow/monitor/__init__.py"),
        ("trueup_mlflow.seeds", "plugins/trueup_mlflow/seeds/__init__.py"),
    ],
    "optuna": [
        ("trueup_optuna", "plugins/trueup_optuna/__init__.py"),
        ("trueup_spark", "plugins/trueup_spark/__init__.py"),
    ],
}
MODULES = {"python": ["trueup.scorers", "trueup.testing"], "mlflow": []}
TITLES = {"python": "Python", "mlflow": "MLflow", "optuna": "Optuna and Spark"}


def on_files(files: Files, config: Any) -> Files:
    """Add the reference pages and the files outside of ``docs``."""
    for page in REFERENCE:
        files.append(File.generated(config, f"reference/{page}.md", content=_reference_page(page)))
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Point links at the places that files of the repository have in the site."""
    uri = page.file.src_uri
    if uri == "reference/errors.md":
        markdown += "\n".join(["\n## Every refusal\n", *refusals()])
    in_repository = uri if uri in OUTSIDE else f"docs/{uri}"

    def placed(link: re.Match[str]) -> str:
        image, text, target, anchor = link.groups()
        if re.match(r"[a-z]+:|/", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), target))
        in_site = path.removeprefix("docs/")
        if files.get_file_from_path(in_site) is None:
            return link[0] if path.startswith("docs/") else text
        relative = posixpath.relpath(in_site, posixpath.dirname(uri) or ".")
        return f"{image}[{text}]({relative}{anchor or ''})"

    return LINK.sub(placed, markdown)


def public_names(face: str) -> list[tuple[str, str]]:
    """Return what a package's face hands on, as (name, home), without importing it."""
    tree = ast.parse((ROOT / face).read_text())
    listed = _all_of(tree)
    handed_on = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trueup")
        for alias in node.names
        if alias.asname == alias.name or alias.name in listed
    }
    here = ".".join(Path(face).parent.parts[1:])
    return sorted({**dict.fromkeys(listed, here), **handed_on}.items())


def _all_of(tree: ast.Module) -> list[str]:
    """Return the names of ``__all__`` where it is written out."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value) if _is_literal(node.value) else []
    return []


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.List) and all(isinstance(e, ast.Constant) for e in node.elts)


def refusals() -> list[str]:
    """Return a table of what the code refuses, and what to do about it, by argument."""
    found = set()
    for file in sorted(ROOT.glob("src/trueup/**/*.py")) + sorted(ROOT.glob("plugins/**/*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            is_raised = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error")
            if is_raised and len(node.args) == 3:
                rule, mend = _text(node.args[0]), _text(node.args[2])
                found |= {(rule, mend)} if " must " in rule and mend else set()
    rows = [f"| {rule} | {mend} |" for rule, mend in sorted(found, key=lambda row: row[0].lower())]
    return ["| rule | mend |", "|---|---|", *rows]


def _text(node: ast.AST) -> str:
    """Return a literal text for a cell; what is only known when it is raised becomes dots."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    words = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts]
    text = "".join(words).replace("|", "\\|").replace("<", "&lt;")
    return "" if text == "…" else re.sub(r"([*_\[\]])", r"\\\1", text)


def _reference_page(page: str) -> str:
    lines = [f"# {TITLES[page]}", ""]
    for package, face in REFERENCE[page]:
        lines += [f"## {package}", ""]
        for name, module in public_names(face):
            lines += _entry(module, name)
    for module in MODULES.get(page, []):
        lines += [f"## {module}", "", f"::: {module}", "    options:", "      heading_level: 3", ""]
    return "\n".join(lines)


def _entry(module: str, name: str) -> list[str]:
    if name in ("EPS", "LOSSES", "FloatArray", "errors"):
        return []
    return [f"::: {module}.{name}", "    options:", "      heading_level: 3", ""]
