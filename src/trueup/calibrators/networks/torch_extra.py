"""Torch, or the pip command that brings it."""

from __future__ import annotations

try:
    import torch as torch
except ModuleNotFoundError as error:
    raise ImportError("This calibrator needs torch. Run: pip install 'trueup[torch]'") from error
