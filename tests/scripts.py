"""Scripts of the project as modules, for the tests of what they compute."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


@contextmanager
def script(path: str) -> Iterator[ModuleType]:
    """Yield a script, named by its path in the project, as a module that is forgotten again."""
    spec = spec_from_file_location(f"script_{Path(path).stem}", ROOT / path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]
