"""The hook on the losses of torch, and on what tells where a validation pass begins.

A loop adds up the losses of batches and logs a number that no function has returned. So each loss
computed without gradients is kept with its batch (``torch_batches``), and a logged number is looked
for among the passes over the validation rows (``passes``).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from trueup_mlflow.autologging.hooking import Place, modules_with, replaced, watched
from trueup_mlflow.autologging.torch_losses.batches import READERS, read_batch
from trueup_mlflow.autologging.torch_losses.passes import Passes

OnFailure = Callable[[Exception], None]


def hook_functional(
    functional: ModuleType, passes: Passes, on_failure: OnFailure
) -> Callable[[], None]:
    """Replace the losses of ``torch.nn.functional``, which those of ``torch.nn`` call.

    Names that modules have bound before, as in ``from torch.nn.functional import cross_entropy``,
    are replaced too. A failure in reading a call goes to ``on_failure``, and the call goes on.
    Returned is what takes the hooks off again.
    """
    places: list[Place] = []
    for name in READERS:
        function = getattr(functional, name)
        seen = _watched(name, function, passes, on_failure)
        owners = [functional, *modules_with(name, function, "torch.")]
        places += [(owner, name, seen) for owner in owners]
    return replaced(places)


def hook_switches(torch: ModuleType, passes: Passes) -> Callable[[], None]:
    """Note where gradients go off and where a model is put to evaluation; return what undoes it."""
    from torch.utils.data import DataLoader

    block = {"before": lambda *_, **__: passes.start_block()}
    loader = {"before": lambda *_, **__: passes.start_loader()}
    switches = (torch.no_grad, torch.inference_mode)
    places: list[Place] = [
        (owner, "__enter__", watched(owner.__enter__, **block)) for owner in switches
    ]
    module = torch.nn.Module
    places.append((module, "eval", watched(module.eval, **block)))
    places.append((DataLoader, "__iter__", watched(DataLoader.__iter__, **loader)))
    return replaced(places)


def _watched(
    name: str, function: Callable[..., Any], passes: Passes, on_failure: OnFailure
) -> Callable[..., Any]:
    import torch

    names = tuple(inspect.signature(function).parameters)
    is_compiling = torch.compiler.is_compiling

    @functools.wraps(function)
    def seen(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        if is_compiling():  # what is traced must stay one path
            return value
        try:
            if value.is_meta:  # no numbers are computed
                pass
            elif value.requires_grad:
                passes.train()
            else:
                arguments = dict(zip(names, args, strict=False))
                arguments.update(kwargs)
                passes.add(_place(), read_batch(name, arguments, value))
        except Exception as failure:  # the user's loss has been computed and is returned
            with suppress(Exception):
                on_failure(failure)
        return value

    # torch.jit.script, which cannot compile a wrapper, asks this for what to compile.
    seen.__prepare_scriptable__ = lambda: function  # type: ignore[attr-defined]
    return seen


def _place() -> tuple[object, int]:
    """Return where the user's code called: two losses of one loop are told apart by their lines."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_of_torch(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame.f_code, frame.f_lineno


@functools.cache
def _is_of_torch(module: str) -> bool:
    return module.startswith(("torch.", "lightning.", "pytorch_lightning."))
