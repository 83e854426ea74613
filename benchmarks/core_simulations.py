"""Coverage, size and power of what the core says about noise; prints Markdown.

Run ``python benchmarks/core_simulations.py > benchmarks/core_simulations.md`` (a few minutes on one
core). Smaller versions are tests in tests/theory.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from trueup import bias_cost_interval, bias_test, field_calibration

N_ROWS = 2000


def draw_rows(rng, n, centre, shift):
    logit = rng.normal(centre, 1.0, n)
    return {"y_true": (rng.random(n) < expit(logit - shift)).astype(int), "y_logit": logit}


def population_cost(centre, shift):
    """Return the mean divergence of the true from the predicted Bernoulli."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    predicted, true = expit(nodes + centre), expit(nodes + centre - shift)
    divergence = true * np.log(true / predicted) + (1 - true) * np.log((1 - true) / (1 - predicted))
    return float(weights @ divergence / weights.sum())


def bias_cost_rows(n_runs=300):
    for n, centre in ((300, -1.0), (2000, -4.5)):
        for shift in (0.0, 0.3):
            rng, cost, covered = np.random.default_rng(1), population_cost(centre, shift), 0
            for seed in range(n_runs):
                rows = draw_rows(rng, n, centre, shift)
                found = bias_cost_interval(**rows, n_resamples=200, random_state=seed)
                covered += found.low <= cost <= found.high
            yield n, centre, shift, f"{cost:.2e}", f"{covered / n_runs:.3f}"


def bias_test_rows(n_runs=4000):
    for n, centre in ((300, -1.0), (2000, -4.5)):
        for shift in (0.0, 0.1, 0.3, 0.6):
            rng = np.random.default_rng(2)
            runs = (draw_rows(rng, n, centre, shift) for _ in range(n_runs))
            rejected = np.mean([bias_test(**rows).p_value < 0.05 for rows in runs])
            yield n, centre, shift, f"{rejected:.3f}"


def debiased_rows(n_runs=200):
    for size in (2, 10, 100, 500):
        for factor in (1.0, 1.2):
            yield (size, factor, *debiased_coverage(size, factor, n_runs))


def debiased_coverage(size, factor, n_runs):
    rng = np.random.default_rng(3)
    level = np.arange(N_ROWS) // size
    spread = rng.normal(0.0, 0.3, level.max() + 1)[level]
    right = expit(-1.4 + spread + rng.normal(0.0, 0.5, N_ROWS))
    y_proba = np.minimum(factor * right, 0.999)
    truth = np.mean((np.bincount(level, weights=y_proba - right) / size) ** 2)
    covered, in_band = 0, 0
    for seed in range(n_runs):
        y_true = (rng.random(N_ROWS) < right).astype(int)
        found = field_calibration(y_true, y_proba, level, random_state=seed)
        covered += found.debiased_low <= truth <= found.debiased_high
        in_band += found.floor_low <= found.ece <= found.floor_high
    return f"{truth:.2e}", f"{covered / n_runs:.3f}", f"{in_band / n_runs:.3f}"


def table(title, names, rows):
    print(f"\n## {title}\n\n| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def main():
    print("# Simulations of the core\n\nNominal coverage is 0.95, nominal size 0.05; seeded.")
    table(
        "Rejection rate of the test of no bias (4,000 runs; error 0.003 at 0.05)",
        ("rows", "mean logit", "true shift", "rejected"),
        bias_test_rows(),
    )
    table(
        f"Fields of {N_ROWS} rows (200 runs; Monte-Carlo error 0.015)",
        (
            "rows per cell",
            "predicted / right",
            "true squared error",
            "coverage of the debiased error",
            "Field-ECE inside the floor's band",
        ),
        debiased_rows(),
    )
    table(
        "Interval of the bias cost (300 runs, 200 resamples; Monte-Carlo error 0.013)",
        ("rows", "mean logit", "true shift", "true cost", "coverage"),
        bias_cost_rows(),
    )


if __name__ == "__main__":
    main()
