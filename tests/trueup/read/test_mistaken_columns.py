"""Columns that hold something else than was said are told apart, and the way out is named."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest

from trueup import InSample, evaluate, evaluate_files
from trueup.errors import InvalidInputError, TrueupWarning

N = 60
Y = np.arange(N) % 2
P = np.linspace(0.01, 0.99, N)
CHOSEN = (np.random.default_rng(4).random(N) < P).astype(int)
SMALL = 0.3 + 0.3 * P
OF_SMALL = (np.random.default_rng(4).random(N) < 1.0 / (1.0 + np.exp(-SMALL))).astype(int)
LOGIT = np.log(P / (1.0 - P))
THREE = np.column_stack([P / 2, P / 2, 1.0 - P])


def message(*arguments, **named):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TrueupWarning)
        evaluate(*arguments, split=InSample(), **named)
    return " ".join(str(one.message) for one in told)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y_logit": P, "y_true": CHOSEN}, "All 60 values of y_logit are in [0, 1], and fit bet"),
        ({"y_logit": P}, ""),  # it says as little one way as the other
        ({"y_logit": SMALL, "y_true": OF_SMALL}, ""),  # small logits of an early epoch
        ({"y_logit": np.zeros(N)}, ""),
        ({"y_logit": np.column_stack([1 - P, P]) * 0.5}, ""),  # their difference has both signs
        ({"y_logit": THREE, "y_true": np.arange(N) % 3}, "fit better as probabilities"),
        ({"y_logit": THREE * 0.9, "y_true": np.arange(N) % 3}, ""),
        ({"y_logit": np.round(100 * P, 1), "y_true": CHOSEN}, "fit better as percentages. If th"),
        ({"y_logit": np.round(100 * THREE), "y_true": np.arange(N) % 3}, "better as percentages"),
        ({"y_logit": 1.0 + 8.0 * P, "y_true": np.arange(N) > 1}, ""),  # confident, and mostly right
        ({"y_logit": 1.0 + P, "y_true": np.arange(N) < 2}, ""),  # an early epoch, few positives
        ({"y_logit": 100.0 * P[:40], "y_true": CHOSEN[:40]}, ""),
        ({"y_pred": Y.astype(float)}, "The predictions equal y_true in all 60 rows"),
        ({"y_pred": Y, "loss": "mean_squared_error"}, "equal y_true"),
        ({"y_pred": np.zeros(N), "y_true": np.zeros(N), "loss": "mean_squared_error"}, ""),
        ({"y_logit": LOGIT}, ""),
        ({"y_logit": np.full(N, 0.5)}, ""),  # a model that predicts one value
        ({"y_logit": np.where(np.arange(N) == N - 1, -0.1, P)}, ""),
        ({"y_logit": P[:40], "y_true": CHOSEN[:40]}, ""),
        ({"y_pred": P}, ""),
    ],
)
def test_suspicious_predictions_are_said_once_and_scored(given, said):
    told = message(**{"y_true": Y, **given})
    assert said in told
    assert bool(said) == ("fit better" in told or "equal" in told)
    assert told.count("All 60") <= 1


@pytest.mark.parametrize(
    ("label", "column", "said"),
    [
        (CHOSEN, P, "fit better as probabilities"),
        (CHOSEN, 30.0 * P, "fit better as percentages"),
        (Y, Y.astype(float), "equal y_true"),
        (Y, LOGIT, ""),
    ],
)
def test_files_are_judged_over_all_of_their_batches(label, column, said, tmp_path):
    for part in range(2):
        rows = range(part * 30, part * 30 + 30)
        text = "".join(f"{label[i]},{column[i]}\n" for i in rows)
        (tmp_path / f"{part}.csv").write_text("y,p\n" + text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TrueupWarning)
        evaluate_files(tmp_path / "*.csv", y_true="y", y_logit="p")
    assert [said in str(one.message) and "60" in str(one.message) for one in told] == (
        [True] if said else []
    )


@pytest.mark.parametrize("word", ["NA", "unknown", " N/A", "?", "null", "None"])
@pytest.mark.parametrize("labels", [None, ["0", "1"]])
def test_missing_label_among_labels_is_called_one(word, labels):
    y = [str(label) for label in Y]
    y[6] = word
    with pytest.raises(InvalidInputError, match=r"at index 6. It looks like a missing label: drop"):
        evaluate(y, P, labels=labels)


def test_stray_label_among_numbers_and_names_of_classes_have_advice_of_their_own():
    with pytest.raises(InvalidInputError, match=r"got '7b' at index 3. Correct the label or drop"):
        evaluate(["0", "1", "0", "7b", *map(str, Y[4:])], P)
    with pytest.raises(InvalidInputError, match=r"holds 'no', 'yes'. Pass labels=\[neg"):
        evaluate(np.where(Y == 1, "yes", "no"), P)
    with pytest.raises(InvalidInputError, match=r"looks like a missing value: drop its row"):
        evaluate([1.5, "NA", *P[2:]], P, loss="mean_squared_error")


@pytest.mark.parametrize("percent", [100 * P, 100 * np.column_stack([1 - P, P])])
def test_percentages_as_probabilities_are_called_so(percent):
    with pytest.raises(InvalidInputError, match=r"look like percentages: divide by 100. Pass prob"):
        evaluate(Y, percent)


def test_exchanged_columns_are_called_so():
    with pytest.raises(InvalidInputError, match=r"see that y_true is not exchanged"):
        evaluate(P, Y)
    with pytest.raises(InvalidInputError, match=r"y_true must be another column than the pred"):
        evaluate_files("any.csv", y_true="p", y_proba="p")


@pytest.mark.parametrize("lost", ["", "NA"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_row_of_a_file_is_counted_from_0_and_found_by_its_line(name, lost, tmp_path):
    lines = ["y,p,note", *(f'{Y[i]},{P[i]},"two\nlines"' for i in range(N))]
    lines[7] = f"{lost},0.5,x"
    data = "\n".join(lines).encode()
    file = tmp_path / name
    file.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    line = 1 + 2 * 6 + 1
    with pytest.raises(InvalidInputError, match=f"counted from 0.*line {line} of the file"):
        evaluate_files(file, y_true="y", y_proba="p")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("n", [3, 20_000])
def test_a_file_in_utf_16_is_called_so(encoding, n, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p\n" + "0,0.25\n" * n, encoding=encoding)
    with pytest.raises(InvalidInputError, match=r"UTF-8; got .* looks like UTF-16.*save it as UTF"):
        evaluate_files(path, y_true="y", y_proba="p")


@pytest.mark.parametrize("shared", ["y_true", "y_proba", "y_logit", "sample_weight"])
def test_one_column_is_not_the_ids_and_something_else(shared):
    columns = {"y_true": "y", shared: "c", "row_id": "c"}
    with pytest.raises(InvalidInputError, match=r"row_id must be another column than .* got 'c'"):
        evaluate_files("any.csv", **columns)


def test_what_ids_are_is_said_of_columns_of_objects_too():
    ids = np.arange(N).astype(float).astype(object)
    with pytest.raises(InvalidInputError, match=r"got dtype object, which holds float. Convert"):
        evaluate(Y, P, row_id=ids)
