"""Every metric key and tag that the MLflow plugin can write is in docs/keys.md.

Keys and tags are read from the source: the keys of dictionaries in the modules that say what a run
gains, and every literal that begins with ``trueup.`` and is not the name of a module.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "trueup_mlflow"
GLOSSARY = (ROOT / "docs" / "keys.md").read_text()
WITH_KEYS = [*(PLUGIN / "write").glob("*items.py"), PLUGIN / "log" / "log_study.py"]
NO_KEYS = {"corrections", "members", "moved", "reasons", "timestamp"}  # of the record of a batch
NO_KEYS |= {"trial "}  # names in a figure


def literal_parts(node: ast.AST | None, constants: dict[str, str]) -> list[str]:
    """Return the constant text of a string, an f-string or the name of a constant."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Name) and node.id in constants:
        return [constants[node.id]]
    if isinstance(node, ast.JoinedStr):
        return [text for value in node.values for text in literal_parts(value, constants)]
    if isinstance(node, ast.FormattedValue):
        return literal_parts(node.value, constants)
    return []


def metric_words(path: Path) -> set[str]:
    """Return the literal words of the keys that a module puts into dictionaries."""
    tree = ast.parse(path.read_text())
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    found = set()
    for node in ast.walk(tree):
        keys = node.keys if isinstance(node, ast.Dict) else []
        keys = [node.key] if isinstance(node, ast.DictComp) else keys
        targets = [node.slice] if isinstance(node, ast.Subscript) else []
        for key in [*keys, *targets]:
            parts = literal_parts(key, constants)
            found |= {re.sub("_(low|high)$", "", part).strip("_") for part in parts}
    return found - NO_KEYS


def tags(path: Path) -> set[str]:
    """Return the literal tags of a module, with their ending dot where a name follows."""
    docstrings = re.sub(r'"""(.|\n)*?"""', "", path.read_text())
    found = set(re.findall(r"[\"'](trueup\.[a-z_.]*)", docstrings))
    modules = {file.stem for file in (ROOT / "src" / "trueup").rglob("*")}
    return {tag for tag in found if tag.split(".")[1] not in modules - {"calibrators"}}


def test_every_metric_key_is_in_the_glossary():
    words = set().union(*(metric_words(path) for path in WITH_KEYS))
    assert len(words) > 20
    assert {"realized_mse", "estimated_mse", "support/"} < words
    assert sorted(word for word in words if word not in GLOSSARY) == []


def test_every_tag_is_in_the_glossary():
    found = set().union(*(tags(path) for path in PLUGIN.rglob("*.py")))
    assert len(found) > 20
    assert sorted(tag for tag in found if tag not in GLOSSARY) == []
