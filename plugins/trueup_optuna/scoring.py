"""From what ``train`` returned to the result of a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import optuna

from trueup import Evaluation, evaluate, splits
from trueup.arguments import check_one_of
from trueup.errors import InvalidInputError, StateMismatchError, UndefinedMetricError
from trueup.losses import Loss, get_loss
from trueup.splits import CrossFit, Split
from trueup.user_warning import warn_user
from trueup_optuna.runtime.signals import hear_signals
from trueup_optuna.study.study_state import METRIC, SPLIT, PinnedStudies, pin
from trueup_optuna.study.trial_state import SeedRecord

Train = Callable[[Any, int], Any]
"""``train(trial, seed)`` returns ``(y_true, y_pred)``, an ``Evaluation`` or a number."""


Catch = type[Exception] | tuple[type[Exception], ...]
"""Exceptions of ``train`` that make a failed seed, as in ``study.optimize(catch=...)``."""
OnError = Literal["drop", "keep"]
"""What becomes of a configuration with a failed seed: it leaves, or stays with the seeds it has."""

_SAME = 2
"""Configurations in a row with the same result under every seed, from which on that is said."""


class FailedSeedError(UndefinedMetricError):
    """A training has no result: it diverged twice, or raised what the caller catches."""


class SeedScorer:
    """Run one training, ``train(trial, seed)``, and score it on the calibrated metric.

    Loss and split are those of ``(y_true, y_pred)``. Exceptions of ``train`` that are in ``catch``
    make a failed seed, others go to the caller.
    """

    def __init__(
        self,
        train: Train,
        loss: str | Loss,
        split: Split,
        catch: Catch = (),
        on_error: OnError = "drop",
    ) -> None:
        if not callable(train):
            raise InvalidInputError(
                "train must be callable", repr(train), "Pass a function train(trial, seed)."
            )
        if not isinstance(split, Split):
            raise InvalidInputError(
                "split must be a Split",
                repr(split),
                "Pass CrossFit(), HoldOut(), Rolling(period) or InSample().",
            )
        check_one_of("on_error", on_error, ("drop", "keep"), "Check the spelling.")
        self.train, self.loss, self.split = train, get_loss(loss), split
        self.catch, self.on_error = read_catch(catch), on_error

    def pin(self, study: optuna.Study) -> None:
        """Keep metric and split in the study; refuse a study that was begun with others."""
        pin(study, {METRIC: self.loss.name, SPLIT: _split_fact(self.split)})

    def __call__(self, trial: Any, seed: int) -> SeedRecord:
        """Return the result; a training whose result isn't finite is run a second time.

        Raises FailedSeedError if the result isn't finite a second time, or ``train`` raised what is
        caught.
        """
        try:
            for _ in range(2):
                with hear_signals():
                    result = self.train(trial, seed)
                record = self._score(result, seed)
                if record is not None:
                    return record
        except self.catch as error:
            raise FailedSeedError(
                f"the training of seed {seed} must return a result; got "
                f"{type(error).__name__}: {error}. It is caught, as asked."
            ) from error
        raise FailedSeedError(
            f"the result of seed {seed} must be finite; got one that isn't, twice. "
            "Find out why the training diverges."
        )

    def _score(self, result: Any, seed: int) -> SeedRecord | None:
        """Return the record of a result, None where it isn't finite."""
        if isinstance(result, tuple) and len(result) == 2:
            _refuse_two_numbers(result)
            if not _finite(result[1]):
                return None
            result = evaluate(*result, loss=self.loss, split=self.split)
        if isinstance(result, Evaluation):
            self._check_loss(result)
            record = _from_evaluation(result, seed)
        else:
            record = SeedRecord(_number(result), seed)
        return record if math.isfinite(record.value) else None

    def _check_loss(self, evaluation: Evaluation) -> None:
        if evaluation.spec.loss != self.loss.name:
            raise InvalidInputError(
                f"loss must be that of the Evaluation, {evaluation.spec.loss!r}",
                repr(self.loss.name),
                "Pass loss= to SeedObjective.",
            )


def read_catch(catch: Catch) -> tuple[type[Exception], ...]:
    """Return the exceptions to catch, each a class of exceptions."""
    classes = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(one, type) and issubclass(one, Exception) for one in classes):
        raise InvalidInputError(
            "catch must be a class of exceptions or a tuple of them",
            repr(catch),
            "Pass catch=(RuntimeError,).",
        )
    return classes


def _refuse_two_numbers(result: tuple[Any, Any]) -> None:
    if all(np.ndim(part) == 0 for part in result):
        raise InvalidInputError(
            "the result of train must be (y_true, y_pred), an Evaluation or a number",
            f"two numbers, {result!r}",
            "Return the one to tune, such as the loss, and keep the other with "
            'trial.set_user_attr("accuracy", ...).',
        )


def _finite(predictions: Any) -> bool:
    """Say whether predictions are finite; what isn't numeric is left to ``evaluate``."""
    try:
        return bool(np.isfinite(np.asarray(predictions, dtype=np.float64)).all())
    except (OverflowError, TypeError, ValueError):
        return True


def _number(result: Any) -> float:
    try:
        return float(result)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInputError(
            "the result of train must be (y_true, y_pred), an Evaluation or a number",
            f"{type(result).__name__}",
            "Return one of the three.",
        ) from None


def _from_evaluation(evaluation: Evaluation, seed: int) -> SeedRecord:
    return SeedRecord(
        float(evaluation.calibrated),
        seed,
        float(evaluation.vanilla),
        evaluation.spec.split,
        evaluation.fingerprint,
    )


class RowCheck:
    """Refuse a result on other rows than other configurations had under the same seed index.

    The study is read until it holds the fingerprint, and not again.
    """

    def __init__(self) -> None:
        self._agreed: dict[tuple[int, str | None], PinnedStudies] = {}

    def __call__(self, study: optuna.Study, index: int, record: SeedRecord) -> None:
        """Compare with the study, which keeps the first fingerprint of each index."""
        agreed = self._agreed.setdefault((index, record.fingerprint), PinnedStudies())
        if (
            record.fingerprint is not None
            and study not in agreed
            and _same_rows(study, index, record.fingerprint)
        ):
            agreed.add(study)


class SameResults:
    """Say once that the seed changes nothing."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def __call__(self, values: Sequence[float]) -> None:
        """Look at the results of a configuration under its seeds."""
        self._in_a_row = self._in_a_row + 1 if len(values) > 1 and len(set(values)) == 1 else 0
        if self._in_a_row == _SAME:
            warn_user(
                f"train gave the same result under each seed for {_SAME} configurations in a row: "
                "its randomness doesn't come from the seed, or it has none. Pass the seed on; where"
                " nothing is random, plain Optuna does with one training a configuration."
            )


def _same_rows(study: optuna.Study, index: int, fingerprint: str) -> bool:
    """Say whether the study holds this fingerprint; write it where the study holds none."""
    key = f"trueup:rows:s{index}"
    known = study.user_attrs.get(key)
    if known is None:
        study.set_user_attr(key, fingerprint)
    elif known != fingerprint:
        raise StateMismatchError(
            f"the rows of seed index {index} must be the same for all configurations",
            f"fingerprint {fingerprint} after {known}",
            "Let the validation rows depend on the seed alone.",
        )
    return known is not None


def scorer_of(
    study: optuna.Study,
    train: Train,
    loss: str | Loss | None,
    split: Split | None,
    catch: Catch = (),
    on_error: OnError = "drop",
) -> SeedScorer:
    """Return a scorer with the metric and the split that the study was begun with."""
    kept = study.user_attrs
    loss = kept.get(METRIC, "log_loss") if loss is None else loss
    split = _kept_split(kept.get(SPLIT)) if split is None else split
    scorer = SeedScorer(train, loss, split, catch, on_error)
    scorer.pin(study)
    return scorer


def _split_fact(split: Split) -> dict[str, Any]:
    return {"type": type(split).__name__, **asdict(split)}  # type: ignore[call-overload]


def _kept_split(kept: dict[str, Any] | None) -> Split:
    if kept is None:
        return CrossFit()
    arguments = {key: value for key, value in kept.items() if key != "type"}
    split: Split = getattr(splits, kept["type"])(**arguments)
    return split
