"""The result of an evaluation, and which results may be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import StateMismatchError
from trueup.presentation import Line, Presented

if TYPE_CHECKING:
    from trueup.fields.calibration import FieldCalibration

BiasTerm = float | tuple[float, ...]


class StandardErrors(NamedTuple):
    """Standard errors of drawing the validation rows, with the model fixed."""

    vanilla: float
    calibrated: float


@dataclass(frozen=True)
class EvaluationSpec:
    """What was computed: equal specs on equal rows give comparable numbers."""

    loss: str
    split: str
    n_classes: int | None = None


_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Evaluation(Presented):
    """Vanilla and calibrated value of one loss for one model on one set of rows.

    Attributes
    ----------
    vanilla : float
        Mean loss over all rows.
    calibrated : float
        Mean loss over the scored rows after the bias correction.
    vanilla_on_scored_rows : float
        Mean loss over the scored rows before the correction.
    bias_term : float or tuple of float
        Bias fitted on all rows: subtracted from logits (positive = predictions too high), added to
        regression predictions and log rates (positive = predictions too low). One term for each
        class, with mean zero, for several classes.
    fold_bias_terms : tuple
        The bias that each scored part was corrected by.
    standard_errors : StandardErrors
        Of ``vanilla`` and ``calibrated``: the sampling of rows only, not of training seeds.
    fields : mapping of str to FieldCalibration
        Calibration error over the levels of each field.
    n, n_scored : int
        All rows, and rows that were scored.
    fingerprint : str
        Identity of the rows, labels, weights and the split; the same in any order of rows.
    spec : EvaluationSpec
        Loss and split.

    Examples
    --------
    >>> from trueup import InSample, evaluate
    >>> result = evaluate([0, 1, 0, 1], [0.6, 0.8, 0.5, 0.7], split=InSample())
    >>> round(result.vanilla, 4), round(result.calibrated, 4), round(result.bias_term, 4)
    (0.5473, 0.4973, 0.658)
    """

    vanilla: float
    calibrated: float
    vanilla_on_scored_rows: float
    bias_term: BiasTerm
    fold_bias_terms: tuple[BiasTerm, ...]
    standard_errors: StandardErrors
    fields: Mapping[str, FieldCalibration]
    n: int
    n_scored: int
    fingerprint: str
    spec: EvaluationSpec

    @property
    def bias_cost(self) -> float:
        """What the bias costs on the scored rows; slightly negative values are noise of the fit."""
        return self.vanilla_on_scored_rows - self.calibrated

    def summary(self) -> str:
        """Return what the bias costs, in a sentence."""
        scored = "" if self.n_scored == self.n else f", {self.n_scored} of them scored"
        bias = _listed(self.bias_term)
        terms = [f"{term:.4g}" for term in (bias if isinstance(bias, list) else [bias])]
        return (
            f"{self.spec.loss} {self.vanilla:.5g} on {self.n} rows{scored}; calibrated "
            f"{self.calibrated:.5g}: the bias {', '.join(terms)} costs {self.bias_cost:.3g}."
        )

    def lines(self) -> list[Line]:
        """Return vanilla and calibrated value with 95% intervals of drawing rows, and fields."""
        return [
            _with_error("vanilla", self.vanilla, self.standard_errors.vanilla),
            _with_error("calibrated", self.calibrated, self.standard_errors.calibrated),
            *(Line(f"ECE over {name}", field.ece) for name, field in self.fields.items()),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values that ``json.dumps`` takes."""
        plain = {name: getattr(self, name) for name in ("vanilla", "calibrated", "bias_cost")}
        return {
            **plain,
            "vanilla_on_scored_rows": self.vanilla_on_scored_rows,
            "bias_term": _listed(self.bias_term),
            "fold_bias_terms": [_listed(bias) for bias in self.fold_bias_terms],
            "standard_errors": self.standard_errors._asdict(),
            "fields": {name: field.to_dict() for name, field in self.fields.items()},
            "n": self.n,
            "n_scored": self.n_scored,
            "fingerprint": self.fingerprint,
            "spec": asdict(self.spec),
        }


def _with_error(name: str, value: float, standard_error: float) -> Line:
    half = _NORMAL_95 * standard_error
    return Line(name, value, value - half, value + half)


def _listed(bias: BiasTerm) -> float | list[float]:
    return list(bias) if isinstance(bias, tuple) else bias


def require_same_rows(
    evaluations: Iterable[Evaluation], *, allow_mismatch: bool = False
) -> frozenset[str]:
    """Refuse to compare numbers that come from different rows, labels, weights or splits.

    Parameters
    ----------
    evaluations : iterable of Evaluation
        What is going to be compared.
    allow_mismatch : bool, default False
        Return the fingerprints, for the record, where they would be refused.

    Returns
    -------
    frozenset of str
        The fingerprints met: one, unless a mismatch was allowed.

    Raises
    ------
    StateMismatchError
        If the fingerprints differ; the message names two of them.

    Examples
    --------
    >>> from trueup import evaluate, require_same_rows
    >>> y = [0, 1] * 50
    >>> one, two = evaluate(y, [0.4, 0.7] * 50), evaluate(y, [0.3, 0.6] * 50)
    >>> len(require_same_rows([one, two]))
    1
    """
    fingerprints = frozenset(evaluation.fingerprint for evaluation in evaluations)
    if len(fingerprints) > 1 and not allow_mismatch:
        first, second, *_ = sorted(fingerprints)
        raise StateMismatchError(
            "evaluations must come from the same rows and split",
            f"{first} and {second}",
            "Evaluate on the same rows, or pass allow_mismatch=True to compare all the same.",
        )
    return fingerprints
