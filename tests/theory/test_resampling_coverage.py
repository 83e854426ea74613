"""The corrected t interval holds the error: the simulation of the benchmarks, smaller."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "resampling_coverage.py"
RUNS = 200


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("resampling_coverage", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def three_errors(share):
    return 3 * math.sqrt(share * (1 - share) / RUNS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inducer", "strategy", "n"),
    [
        ("linear, squared error", "10-fold", 200),
        ("linear, squared error", "10-fold", 2000),
        ("linear, squared error", "20 x subsampling (80%)", 200),
        ("tree, squared error", "10-fold", 200),
        ("tree, squared error", "10-fold", 2000),
        ("tree, squared error", "2 x 10-fold", 200),
    ],
)
def test_interval_covers_the_error_over_training_sets(simulation, inducer, strategy, n):
    found = simulation.coverage(inducer, strategy, n, RUNS)
    for coverage in (found.vanilla, found.calibrated):
        assert 0.90 - three_errors(0.90) <= coverage <= 0.995 + three_errors(0.995)
    assert abs(found.bias) < 4  # the error of the truth adds a little to three


def test_the_simulation_can_fail(simulation):
    """Test sets taken as independent: coverage is .56 at full size."""
    found = simulation.coverage("linear, squared error", "20 x subsampling (80%)", 200, RUNS)
    assert found.naive < 0.90 - three_errors(0.90)
