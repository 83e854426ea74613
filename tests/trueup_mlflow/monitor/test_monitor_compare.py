import numpy as np
import pytest

from trueup.monitoring import MSEEstimate
from trueup_mlflow.monitor.compare_versions import decide, paired_batches
from trueup_mlflow.write.monitor_items import BatchRecord

NOISE = (0.00, 0.01, -0.01, 0.02, -0.02, 0.01, -0.01, 0.00)


def estimate(mse, width=0.05, *, trusted=True):
    return MSEEstimate(mse, mse - width, mse + width, {}, trusted, (), 100)


def series(mse, *, n=8, noise=0.0, realized=None, trusted=True):
    return [
        BatchRecord(
            digest=str(k),
            step=k,
            timestamp=1_000 * k + 7,
            n=100,
            estimate=estimate(mse + noise * NOISE[k], trusted=trusted).to_dict(),
            realized=None if realized is None else realized + NOISE[k],
        )
        for k in range(n)
    ]


def test_a_clear_difference_over_the_batches_and_on_this_one_is_a_verdict():
    better, worse = (estimate(0.5), series(0.5, noise=1.0)), (estimate(1.0), series(1.0))
    found = decide(worse[0], better[0], worse[1], better[1])
    assert (found.verdict, found.reason, found.basis) == ("challenger", "", "estimated")
    assert found.series.difference == pytest.approx(-0.5)
    assert decide(better[0], worse[0], better[1], worse[1]).verdict == "champion"


@pytest.mark.parametrize(
    ("challenger", "records", "reason"),
    [
        (estimate(0.5), series(0.5, n=4), "4 shared batches"),
        (estimate(0.5), series(0.5, trusted=False), "0 shared batches"),
        (estimate(0.5, trusted=False), series(0.5), "not to be trusted"),
        (estimate(0.5, width=0.6), series(0.5), "the intervals on this batch overlap"),
        (estimate(1.0), series(1.0, noise=1.0), "over 8 shared batches may be 0"),
    ],
)
def test_inconclusive_says_why(challenger, records, reason):
    found = decide(estimate(1.0), challenger, series(1.0), records)
    assert found.verdict == "inconclusive"
    assert reason in found.reason


def test_realized_errors_decide_where_both_have_them():
    champion = series(0.5, realized=1.0)
    challenger = series(1.0, realized=0.5)
    champion = [record.mark(realized=record.realized + 0.001 * record.step) for record in champion]
    found = decide(estimate(0.5), estimate(1.0), champion, challenger)
    assert (found.verdict, found.basis) == ("challenger", "realized")


def test_batches_that_cannot_be_told_apart_are_not_paired():
    first = series(1.0, n=3)
    twin = first[0].mark(digest="twin")
    other = [first[2].mark(n=99)]
    assert list(paired_batches([*first, twin], [*first, *other])) == [(1, 100), (2, 100)]


def test_equal_models_with_a_shared_error_of_their_references_get_no_verdict():
    """The luck of a reference moves all batches alike; the series alone would call a winner."""
    rng = np.random.default_rng(0)
    called = alone = 0
    for _ in range(200):
        luck = np.exp(rng.normal(0.0, 0.15, size=2))
        arms = []
        for shift in luck:
            values = shift * np.exp(rng.normal(0.0, 0.02, size=12))
            reach = np.exp(1.645 * np.hypot(0.15, 0.02))
            estimates = [MSEEstimate(v, v / reach, v * reach, {}, True, (), 100) for v in values]
            arms.append(
                [
                    BatchRecord(str(k), k, 1_000 * k, 100, one.to_dict())
                    for k, one in enumerate(estimates)
                ]
            )
        last = estimates_of_last(arms)
        found = decide(*last, *arms)
        called += found.verdict != "inconclusive"
        alone += found.series.verdict != "inconclusive"
    assert alone > 100
    assert called <= 10


def estimates_of_last(arms):
    return [
        MSEEstimate(**{**arm[-1].estimate, "reasons": tuple(arm[-1].estimate["reasons"])})
        for arm in arms
    ]
