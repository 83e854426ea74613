"""The result of an evaluation, and which results may be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import StateMismatchError

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


@dataclass(frozen=True)
class Evaluation:
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
    """
    fingerprints = frozenset(evaluation.fingerprint for evaluation in evaluations)
    if len(fingerprints) > 1 and not allow_mismatch:
        first, second, *_ = sorted(fingerprints)
        raise StateMismatchError(
            f"evaluations must come from the same rows and split; got {first} and {second}. "
            "Evaluate on the same rows, or pass allow_mismatch=True to compare all the same."
        )
    return fingerprints
