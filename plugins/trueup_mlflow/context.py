"""The switch without code: ``TRUEUP_AUTOLOG=1`` in the environment turns autologging on.

MLflow loads and constructs this class while ``import mlflow`` runs, and an exception here would end
that import. So the module needs the standard library only, imports everything else when it is
switched on, and turns each failure into a warning.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable
from types import ModuleType

AUTOLOG_VARIABLE = "TRUEUP_AUTOLOG"
SEED_VARIABLE = "TRUEUP_SEED"
ON = ("1", "true", "yes", "on")
OFF = ("", "0", "false", "no", "off")


class TrueupRunContext:
    """Turns autologging on as MLflow is imported, where the environment asks for it.

    With ``TRUEUP_AUTOLOG`` set to 1, true, yes or on it does what :func:`trueup_mlflow.autolog`
    does. With ``TRUEUP_SEED`` set as well it seeds the global generators of ``random``, numpy and
    torch, each as soon as it is imported: the one place of trueup that touches global generators. A
    generator that the code makes itself, such as ``numpy.random.default_rng()``, is not reached.

    It has the methods of MLflow's ``RunContextProvider`` without being one: to import that class is
    to import MLflow, which looks for this one while it loads.
    """

    def __init__(self) -> None:
        if _attempt(is_switched_on):
            _attempt(_seed_generators)
            _attempt(_start_autologging)

    def in_context(self) -> bool:
        """Return False: the tags of trueup come with the metrics that they explain."""
        return False

    def tags(self) -> dict[str, str]:
        """Return no tags."""
        return {}


def is_switched_on() -> bool:
    """Return whether the environment asks for autologging; warn of a value that says neither."""
    value = os.environ.get(AUTOLOG_VARIABLE, "").strip().lower()
    if value not in (*ON, *OFF):
        _warn(
            f"{AUTOLOG_VARIABLE} must be one of {', '.join(ON)} to switch trueup on; "
            f"got {os.environ[AUTOLOG_VARIABLE]!r}. trueup is off."
        )
    return value in ON


def _start_autologging() -> None:
    from trueup_mlflow.autologging.session import start

    start(while_mlflow_loads=True)


def _seed_generators() -> None:
    text = os.environ.get(SEED_VARIABLE)
    if text is None:
        return
    seed = int(text)
    random.seed(seed)
    _when_imported("numpy", lambda numpy: numpy.random.seed(seed % 2**32))
    _when_imported("torch", lambda torch: torch.manual_seed(seed))


def _when_imported(name: str, seed: Callable[[ModuleType], object]) -> None:
    from mlflow.utils.import_hooks import register_post_import_hook

    def seed_module(module: ModuleType) -> None:
        _attempt(lambda: seed(module))

    register_post_import_hook(seed_module, name)


def _attempt(action: Callable[[], object]) -> object:
    try:
        return action()
    except Exception as failure:  # whatever it is, it must not end `import mlflow`
        _warn(f"trueup is off: {type(failure).__name__}: {failure}")
        return None


def _warn(message: str) -> None:
    try:
        warnings.warn(message, UserWarning, stacklevel=2)
    except UserWarning:  # filters that turn warnings into errors
        return
