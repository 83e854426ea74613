"""YAML of spaces: numbers as Python writes them, and no word that is a truth value by surprise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from trueup.errors import InvalidInputError
from trueup.read.columns import shown

_SURPRISE = "!surprise"
_PLAIN = {
    "tag:yaml.org,2002:null": r"~|null|Null|NULL|",
    "tag:yaml.org,2002:bool": r"true|True|TRUE|false|False|FALSE",
    "tag:yaml.org,2002:int": r"[-+]?(?:0|[1-9][0-9_]*)",
    "tag:yaml.org,2002:float": (
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
    "tag:yaml.org,2002:merge": r"<<",
    _SURPRISE: r"(?i:yes|no|on|off)",
}
"""What a word without quotes is: 1e-3 is a number, 010 and 12:30 are text."""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str | None, list[Any]] = {}  # noqa: RUF012 - PyYAML's own form

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that is there twice, of which PyYAML takes the last."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            raise InvalidInputError(
                "keys of a space must differ",
                f"{twice!r} twice, again {_line(node)}",
                "Drop one of them.",
            )
        return super().construct_mapping(node, deep)


def _refuse_surprise(_: yaml.SafeLoader, node: yaml.ScalarNode) -> None:
    word = node.value
    raise InvalidInputError(
        "a word must be quoted where YAML may read it as a truth value",
        f"{word} {_line(node)}",
        f'Write "{word}" for the word, or true or false.',
    )


for _tag, _pattern in _PLAIN.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), None)
_Loader.add_constructor(_SURPRISE, _refuse_surprise)


def read_yaml(path: str | Path) -> Any:
    """Return the content of a YAML file, no key of it twice; yes, no, on and off are quoted."""
    try:
        return yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)
    except InvalidInputError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInputError(
            "space must be a YAML file", repr(str(path)), f"Correct it: {shown(reason)}"
        ) from None


def _line(node: yaml.Node) -> str:
    return f"in line {node.start_mark.line + 1}"
