from __future__ import annotations

import subprocess
import sys

import pytest

import trueup.comparison


def test_every_public_name_can_be_imported():
    for name in trueup.comparison.__all__:
        assert getattr(trueup.comparison, name).__module__.startswith("trueup.decide.")
    assert set(dir(trueup.comparison)) == set(trueup.comparison.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'trueup.comparison' has no attribute 'best'"):
        trueup.comparison.best  # noqa: B018


def test_comparing_loads_no_heavy_package():
    code = (
        "import sys; from trueup.comparison import compare; "
        "print(compare({0: 1.0, 1: 2.0}, {0: 2.0, 1: 2.5})); "
        "print(*(name.partition('.')[0] for name in sys.modules), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"mlflow", "optuna", "torch", "pandas", "sklearn", "matplotlib"}
    assert heavy.isdisjoint(run.stderr.split())
