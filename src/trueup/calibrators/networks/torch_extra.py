"""Torch, or the pip command that brings it."""

from __future__ import annotations

from trueup.extras import needed_by

with needed_by("This calibrator"):
    import torch as torch
