"""The passes that the hooks on torch see, without any store."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from trueup_mlflow.autologging.torch_losses.hook import hook_functional, hook_switches
from trueup_mlflow.autologging.torch_losses.passes import Passes


@pytest.fixture
def passes():
    seen = Passes()
    undo = [hook_functional(functional, seen, lambda failure: pytest.fail(str(failure)))]
    undo.append(hook_switches(torch, seen))
    yield seen
    for back in undo:
        back()
