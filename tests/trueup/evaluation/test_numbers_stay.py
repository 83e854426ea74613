"""The numbers and fingerprints of one small data set, as they were before the work on speed.

The rows come from arithmetic alone, so that no generator of numpy is part of the test. Numbers
that are simulated are left out.
"""

from __future__ import annotations

import numpy as np
import pytest

from trueup import CrossFit, HoldOut, InSample, Rolling, evaluate, field_calibration

N = 600
PLACE = np.arange(N)
LOGIT = 3.0 * np.sin(PLACE * 0.7) - 1.0
LABEL = (1.0 / (1.0 + np.exp(0.4 - 0.8 * LOGIT)) > (PLACE * 7919) % 1009 / 1009.0).astype(float)
WEIGHT = 0.25 * (PLACE % 9)
TARGET = ((PLACE * 37) % 101 - 60) / 16.0
COUNT = (PLACE * 31) % 5
SITE = PLACE % 13
PROBA = 1.0 / (1.0 + np.exp(-LOGIT))

CASES = {
    "log loss": {"y_true": LABEL, "y_pred": PROBA},
    "logits, weighted": {"y_true": LABEL, "y_logit": LOGIT, "sample_weight": WEIGHT},
    "brier, held out": {
        "y_true": LABEL,
        "y_pred": PROBA,
        "loss": "brier_score",
        "split": HoldOut(0.3),
    },
    "squared error": {
        "y_true": TARGET,
        "y_pred": LOGIT,
        "loss": "mean_squared_error",
        "split": CrossFit(3, salt=7),
    },
    "poisson": {
        "y_true": COUNT,
        "y_pred": np.exp(0.3 * LOGIT),
        "loss": "poisson_deviance",
        "sample_weight": WEIGHT,
    },
    "in sample": {"y_true": LABEL, "y_pred": PROBA, "split": InSample()},
    "rolling": {
        "y_true": LABEL,
        "y_pred": PROBA,
        "split": Rolling(100),
        "times": PLACE.astype(float),
    },
    "softmax": {"y_true": PLACE % 3, "y_logit": np.stack([LOGIT, -LOGIT, LOGIT**2 / 5], axis=1)},
}
EXPECTED = {
    "log loss": (
        0.4725413825289066,
        0.4599897194014841,
        0.4725413825289066,
        0.027702101732373627,
        0.02808494719884131,
        0.46462945598555444,
        "5b14489976c65b57047e52bb2859429f",
    ),
    "logits, weighted": (
        0.3718708183176918,
        0.3707486214163604,
        0.3718708183176918,
        0.032354428850823846,
        0.03493227541093638,
        0.23530403862095287,
        "4300880397bdb4481fdacb0f5069008a",
    ),
    "brier, held out": (
        0.1541369055177534,
        0.14480273176655087,
        0.15190049892205687,
        0.009988329457965094,
        0.01139434097948652,
        0.46462945598555444,
        "5b14489976c65b57047e52bb2859429f",
    ),
    "squared error": (
        7.99234492030903,
        7.8714769688620905,
        7.99234492030903,
        0.37343716722612685,
        0.3650973699770318,
        0.36639481723456385,
        "a24f26a985d9443e384baa5d8fcf3f0f",
    ),
    "poisson": (
        3.786149994579344,
        1.9480874741005394,
        3.786149994579344,
        0.18721138851739008,
        0.08957062140107111,
        1.1398035109800801,
        "b62c6f4507fbfd3b6dc32b4672cfa0fe",
    ),
    "in sample": (
        0.4725413825289066,
        0.4593945529356178,
        0.4725413825289066,
        0.027702101732373627,
        0.028054643740743023,
        0.46462945598555444,
        "5b14489976c65b57047e52bb2859429f",
    ),
    "rolling": (
        0.4725413825289066,
        0.4564876090986796,
        0.4698297246016997,
        0.027702101732373627,
        0.03040272925874746,
        0.46462945598555444,
        "0d1926155f96820a57f7f8f3bb8893c1",
    ),
    "softmax": (
        2.0562203988063645,
        2.011050257683737,
        2.0562203988063645,
        0.09552939786218495,
        0.09189259773421286,
        -0.4337119964725099,
        0.5655291374248033,
        -0.13181714095229335,
        "7b36ca5e072015d02556e125292a1509",
    ),
}
FIELDS = {
    "plain": {
        "ece": 0.06441107555850956,
        "rce": 0.21596099351997267,
        "floor": 0.04112583626472459,
        "debiased": 0.002619420075601798,
        "n_discoveries": 1,
        "level": "9",
        "p_value": 0.002039940908629548,
        "q_value": 0.026519231812184123,
        "offset": -0.7631176167749025,
        "low": -0.3105589923182258,
        "high": 0.04694523964080788,
    },
    "weighted": {
        "ece": 0.043149321880782965,
        "rce": 0.2547088691659397,
        "debiased": -0.0003922299879954317,
        "n_discoveries": 0,
        "level": "9",
        "p_value": 0.03135598328955043,
        "q_value": 0.40762778276415557,
        "offset": 0.0,
        "low": -0.19915464632900737,
        "high": 0.13818478933078526,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_evaluation_stays(case):
    *numbers, rows = EXPECTED[case]
    found = evaluate(**CASES[case])
    assert found.fingerprint.startswith(f"{rows}:")
    terms = found.bias_term if isinstance(found.bias_term, tuple) else (found.bias_term,)
    losses = found.vanilla, found.calibrated, found.vanilla_on_scored_rows
    assert (*losses, *found.standard_errors, *terms) == pytest.approx(numbers, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_field_stays(weight):
    expected = FIELDS["plain" if weight is None else "weighted"]
    found = field_calibration(LABEL, PROBA, SITE, sample_weight=weight)
    worst = {name: values[0] for name, values in found.cells.to_columns().items()}
    for name, number in expected.items():
        value = worst[name] if name in worst else getattr(found, name)
        assert value == (number if name == "level" else pytest.approx(number, rel=1e-11)), name
