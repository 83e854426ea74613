"""Named properties that a loss or a split must have to work in ``evaluate``: run them on your own.

Each check is a function whose name is the property, without the leading underscore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from trueup._kernels import UInt64Array
from trueup.losses import FloatArray, Loss
from trueup.splits import Split

_N = 400


def check_loss(loss: Loss, *, random_state: int = 0) -> tuple[str, ...]:
    """Check that a loss has the properties that calibrated metrics rely on.

    Parameters
    ----------
    loss : Loss
        The loss; the rows that it is checked on are drawn for its ``task``.
    random_state : int, default 0
        Seed of those rows.

    Returns
    -------
    tuple of str
        The names of the properties, all of which hold.

    Raises
    ------
    AssertionError
        If a property does not hold; the message names each one that fails and says how.

    Examples
    --------
    >>> from trueup.testing import check_loss
    >>> from trueup.losses import SquaredError
    >>> "corrected_rows_have_no_bias_left" in check_loss(SquaredError())
    True
    """
    rows = _draw_rows(loss, np.random.default_rng(random_state))
    return _run(type(loss).__name__, _LOSS_CHECKS, loss, rows)


def check_split(
    split: Split, *, times: NDArray[Any] | None = None, random_state: int = 0
) -> tuple[str, ...]:
    """Check that a split has the properties that calibrated metrics rely on.

    Parameters
    ----------
    split : Split
        The split.
    times : array of shape (n,), optional
        Times of n >= 100 rows where the split needs them, in any order.
    random_state : int, default 0
        Seed of the row ids.

    Returns
    -------
    tuple of str
        The names of the properties, all of which hold.

    Raises
    ------
    AssertionError
        If a property does not hold; the message names each one that fails and says how.

    Examples
    --------
    >>> from trueup import CrossFit
    >>> from trueup.testing import check_split
    >>> len(check_split(CrossFit(5)))
    7
    """
    rng = np.random.default_rng(random_state)
    n = 1000 if times is None else len(times)
    row_id = rng.integers(0, 2**63, n).astype(np.uint64)
    return _run(type(split).__name__, _SPLIT_CHECKS, split, _Identities(row_id, times))


def _run(
    owner: str, checks: Iterable[Callable[[Any, Any], None]], subject: object, rows: object
) -> tuple[str, ...]:
    held, failed = [], []
    for check in checks:
        try:
            check(subject, rows)
            held.append(_property_name(check))
        except Exception as error:  # a third party's code may fail in any way
            failed.append(f"{_property_name(check)}: {type(error).__name__}: {str(error).strip()}")
    if failed:
        raise AssertionError(f"{owner} breaks {len(failed)} properties.\n" + "\n\n".join(failed))
    return tuple(held)


def _property_name(check: Callable[[Any, Any], None]) -> str:
    return check.__name__.lstrip("_")


@dataclass(frozen=True)
class _Rows:
    y_true: FloatArray
    y_pred: FloatArray
    weight: FloatArray


def _draw_rows(loss: Loss, rng: np.random.Generator) -> _Rows:
    if loss.task == "binary":
        y_true, y_pred = rng.integers(0, 2, _N), rng.uniform(0.02, 0.98, _N)
    elif loss.task == "multiclass":
        y_true, y_pred = rng.integers(0, 4, _N), softmax(rng.normal(size=(_N, 4)), axis=1)
    elif loss.task in ("counts", "positive"):
        y_true = rng.poisson(2.0, _N) if loss.task == "counts" else rng.integers(1, 9, _N)
        y_pred = rng.gamma(2.0, size=_N) + 0.1
    else:
        y_true, y_pred = rng.integers(-9, 9, _N), rng.normal(0.5, 4.0, _N)
    return _Rows(y_true.astype(np.float64), y_pred, rng.integers(1, 4, _N).astype(np.float64))


def _values_are_one_finite_number_for_each_row(loss: Loss, rows: _Rows) -> None:
    values = loss.values(rows.y_true, loss.link(rows.y_pred))
    assert values.shape == (_N,), f"got shape {values.shape} for {_N} rows"
    assert np.isfinite(values).all(), "got a value that is not finite"


def _value_of_a_row_depends_on_that_row_alone(loss: Loss, rows: _Rows) -> None:
    some = slice(3, None, 7)
    whole = loss.values(rows.y_true, loss.link(rows.y_pred))[some]
    _equal(loss.values(rows.y_true[some], loss.link(rows.y_pred[some])), whole)


def _arguments_are_left_as_they_were(loss: Loss, rows: _Rows) -> None:
    arrays = [rows.y_true.copy(), rows.y_pred.copy(), rows.weight.copy()]
    for array in arrays:
        array.setflags(write=False)
    y_true, y_pred, weight = arrays
    margin = np.array(loss.link(y_pred))
    margin.setflags(write=False)
    bias = loss.fit_bias(y_true, margin, weight)
    loss.values(y_true, loss.correct(margin, bias))


def _bias_has_one_term_for_each_column(loss: Loss, rows: _Rows) -> None:
    margin = loss.link(rows.y_pred)
    bias = loss.fit_bias(rows.y_true, margin, None)
    assert bias.shape == margin.shape[1:], f"got shape {bias.shape}, not {margin.shape[1:]}"
    assert np.isfinite(bias).all(), "got a bias that is not finite"


def _order_of_rows_does_not_matter(loss: Loss, rows: _Rows) -> None:
    margin, order = loss.link(rows.y_pred), np.arange(_N)[::-1]
    backwards = loss.fit_bias(rows.y_true[order], margin[order], rows.weight[order])
    _equal(backwards, loss.fit_bias(rows.y_true, margin, rows.weight))


def _integer_weights_equal_repeated_rows(loss: Loss, rows: _Rows) -> None:
    margin, repeats = loss.link(rows.y_pred), rows.weight.astype(np.intp)
    repeated = loss.fit_bias(
        np.repeat(rows.y_true, repeats), np.repeat(margin, repeats, axis=0), None
    )
    _equal(loss.fit_bias(rows.y_true, margin, rows.weight), repeated)


def _scale_of_weights_does_not_matter(loss: Loss, rows: _Rows) -> None:
    margin = loss.link(rows.y_pred)
    _equal(
        loss.fit_bias(rows.y_true, margin, 3.0 * rows.weight),
        loss.fit_bias(rows.y_true, margin, rows.weight),
    )


def _zero_bias_corrects_nothing(loss: Loss, rows: _Rows) -> None:
    margin = loss.link(rows.y_pred)
    for one_for_all_or_for_each in (margin.shape[1:], margin.shape):
        _equal(loss.correct(margin, np.zeros(one_for_all_or_for_each)), margin)


def _corrected_rows_have_no_bias_left(loss: Loss, rows: _Rows) -> None:
    margin = loss.link(rows.y_pred)
    corrected = loss.correct(margin, loss.fit_bias(rows.y_true, margin, rows.weight))
    _equal(loss.fit_bias(rows.y_true, corrected, rows.weight), np.zeros(margin.shape[1:]))


def _calibrated_values_do_not_see_a_shift_of_the_margin(loss: Loss, rows: _Rows) -> None:
    margin = loss.link(rows.y_pred)
    shift = np.linspace(0.3, 0.9, margin.shape[1]) if margin.ndim == 2 else 0.7
    _equal(_calibrated(loss, rows, margin + shift), _calibrated(loss, rows, margin))


def _bias_minimises_the_mean_loss_where_it_says_so(loss: Loss, rows: _Rows) -> None:
    if not loss.minimised_by_bias:
        return
    margin = loss.link(rows.y_pred)
    bias = loss.fit_bias(rows.y_true, margin, None)
    best = loss.values(rows.y_true, loss.correct(margin, bias)).mean()
    for step in np.vstack([np.eye(bias.size), -np.eye(bias.size)]) * 1e-3:
        near = loss.correct(margin, bias + step.reshape(bias.shape))
        worse = loss.values(rows.y_true, near).mean()
        assert worse >= best - 1e-14, f"a step of {step} lowers the mean from {best} to {worse}"


def _calibrated(loss: Loss, rows: _Rows, margin: FloatArray) -> FloatArray:
    bias = loss.fit_bias(rows.y_true, margin, None)
    return loss.values(rows.y_true, loss.correct(margin, bias))


def _equal(found: FloatArray, expected: FloatArray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


_LOSS_CHECKS: tuple[Callable[[Loss, _Rows], None], ...] = (
    _values_are_one_finite_number_for_each_row,
    _value_of_a_row_depends_on_that_row_alone,
    _arguments_are_left_as_they_were,
    _bias_has_one_term_for_each_column,
    _order_of_rows_does_not_matter,
    _integer_weights_equal_repeated_rows,
    _scale_of_weights_does_not_matter,
    _zero_bias_corrects_nothing,
    _corrected_rows_have_no_bias_left,
    _calibrated_values_do_not_see_a_shift_of_the_margin,
    _bias_minimises_the_mean_loss_where_it_says_so,
)


@dataclass(frozen=True)
class _Identities:
    row_id: UInt64Array
    times: NDArray[Any] | None

    def take(self, rows: Any) -> _Identities:
        return _Identities(self.row_id[rows], None if self.times is None else self.times[rows])

    def groups(self, split: Split) -> NDArray[np.intp]:
        return split.groups(self.row_id, self.times)


def _groups_are_counted_from_zero(split: Split, rows: _Identities) -> None:
    groups = rows.groups(split)
    assert groups.shape == rows.row_id.shape, f"got shape {groups.shape}"
    assert groups.dtype.kind == "i", f"got dtype {groups.dtype}"
    assert groups.min() >= 0, f"got group {groups.min()}"


def _group_of_a_row_does_not_depend_on_its_place(split: Split, rows: _Identities) -> None:
    order = np.arange(len(rows.row_id))[::-1]
    np.testing.assert_array_equal(rows.take(order).groups(split), rows.groups(split)[order])


def _later_rows_leave_the_groups_of_earlier_ones(split: Split, rows: _Identities) -> None:
    n = len(rows.row_id)
    order = np.arange(n) if rows.times is None else np.argsort(rows.times, kind="stable")
    first = order[: n // 2]
    np.testing.assert_array_equal(rows.take(first).groups(split), rows.groups(split)[first])


def _same_rows_give_the_same_groups_and_parts(split: Split, rows: _Identities) -> None:
    groups = rows.groups(split)
    np.testing.assert_array_equal(groups, rows.groups(split))
    n_groups = int(groups.max()) + 1
    assert list(split.parts(n_groups)) == list(split.parts(n_groups))


def _each_group_is_scored_at_most_once(split: Split, rows: _Identities) -> None:
    scored = [part.scored for part in split.parts(int(rows.groups(split).max()) + 1)]
    assert scored, "no group is scored"
    assert len(scored) == len(set(scored)), f"got {scored}"


def _parts_name_groups_that_exist(split: Split, rows: _Identities) -> None:
    n_groups = int(rows.groups(split).max()) + 1
    for part in split.parts(n_groups):
        assert part.fitted_on, f"{part} fits its bias on no group"
        named = {part.scored, *part.fitted_on}
        assert named <= set(range(n_groups)), f"{part} names a group out of 0 to {n_groups - 1}"


def _repr_states_the_settings(split: Split, rows: _Identities) -> None:  # noqa: ARG001
    assert " at 0x" not in repr(split), "the repr, part of each fingerprint, must not be an address"


_SPLIT_CHECKS: tuple[Callable[[Split, _Identities], None], ...] = (
    _groups_are_counted_from_zero,
    _group_of_a_row_does_not_depend_on_its_place,
    _later_rows_leave_the_groups_of_earlier_ones,
    _same_rows_give_the_same_groups_and_parts,
    _each_group_is_scored_at_most_once,
    _parts_name_groups_that_exist,
    _repr_states_the_settings,
)
