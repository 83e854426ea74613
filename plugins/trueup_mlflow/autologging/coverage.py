"""What each run gained from autologging, and why the rest gained nothing."""

from __future__ import annotations

import math
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

ADVICE = "For a loss among these call trueup_mlflow.log_evaluation(y_true, y_pred, prefix=...)"
_CALLBACKS = {
    "keras": "KerasCallback",
    "lightgbm": "LightGBMCallback",
    "lightning": "LightningCallback",
    "transformers": "HuggingFaceCallback",
    "xgboost": "XGBoostCallback",
}
"""What to give to a training whose framework keeps its predictions to itself."""
_MAX_RUNS = 256
_MAX_KEYS = 200
_SHOWN_KEYS = 12
_MAX_LENGTH = 4000  # MLflow's limit of a tag is 5000 in some stores
UNSEEN = "no loss that trueup watches was computed before it was logged"
UNKNOWN = "no watched loss, and no mean over the batches of a validation pass, has this value"
NEAR = "it is near a watched loss, but is neither that number nor a sum over its batches"
FLOAT32 = "it is a watched loss rounded to float32: log it as the function returned it"
SHORT = (
    "no watched loss, or one of four significant digits or fewer, as another metric may have by "
    "chance"
)
TRAINING_TOO = "; losses with gradients, as in training, are not watched"
OF_PROCESSES = (
    "; a mean over several processes is not recognised, since each sees its own rows only: gather "
    "the predictions in the first"
)
NOT_COVERED = "{} was called, which is not covered: its models are scored on folds of their own"
IN_TRAINING = "losses were seen with gradients only, as in training: validate under torch.no_grad()"
_USUAL_DIGITS = (4, 6, 3, 5, 2, 8, 7, 1)
_CLOSE = 1e-5
_MOST_FLOAT32 = 3.4e38


@dataclass(frozen=True)
class Note:
    """What became of one value: a twin where there is no reason against it.

    Without a step it is the reason for a value that was never logged.
    """

    key: str
    step: int | None
    value: float | None = None
    reason: str | None = None


class KeyCoverage:
    """How many values of one key were logged, and how many of them have twins."""

    def __init__(self) -> None:
        self.n = self.n_twins = 0
        self.reason: str | None = None  # of the first value without twin
        self._steps = (math.inf, -math.inf)  # the least and the greatest
        self._twin: float | None = None  # the last value with a twin, at the greatest step
        self.is_overwritten = False  # whether MLflow shows that twin beside a later value

    def add(self, note: Note) -> None:
        """Count a value; the first reason counts."""
        self.reason = self.reason or note.reason
        if note.step is None:
            return
        has_twin = note.reason is None
        self.n += 1
        self.n_twins += has_twin
        if note.step > self._steps[1]:
            self._twin = None
        if note.step >= self._steps[1]:
            self._twin = note.value if has_twin else self._twin
            self.is_overwritten = self._twin is not None and note.value != self._twin
        self._steps = (min(self._steps[0], note.step), max(self._steps[1], note.step))

    @property
    def share(self) -> str:
        """What has twins, such as "all", "none" or "a twin at 2 of 5 steps"."""
        if self.n_twins == 0:
            return "none"
        if self.n_twins == self.n:
            return "all"
        unit = "values" if self._steps[0] == self._steps[1] else "steps"
        return f"a twin at {self.n_twins} of {self.n} {unit}"


class RunCoverage:
    """The keys of one run with what became of their values."""

    def __init__(self) -> None:
        self.keys: dict[str, KeyCoverage] = {}
        self.put_off: str | None = None

    def sentence(self) -> str | None:
        """Return what the run gained; None where no metric was logged."""
        found: dict[tuple[str, str], list[str]] = {}
        for key, covered in sorted(self.keys.items(), key=lambda item: item[1].share == "none"):
            share = covered.share
            reason = "" if share == "all" else (covered.reason or UNKNOWN).removesuffix(".")
            found.setdefault((share, reason), []).append(key)
        if not found:
            return None
        full = found.pop(("all", ""), [])
        parts = [f"twins of {_listed(full)}"] if full else []
        parts += [f"{share} of {_listed(keys)}: {why}" for (share, why), keys in found.items()]
        advice = [_advice()] if found else []
        put_off = [f"Not all were stored: {self.put_off}."] if self.put_off else []
        return " ".join(["; ".join(parts) + ".", *put_off, *advice])[:_MAX_LENGTH]


class Coverage:
    """What the latest runs of this process gained."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, RunCoverage] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, run_id: str, notes: Iterable[Note]) -> None:
        """Count values that the store took."""
        with self._lock:
            keys = self._of(run_id).keys
            for note in notes:
                if note.key in keys or note.reason is None or len(keys) < _MAX_KEYS:
                    keys.setdefault(note.key, KeyCoverage()).add(note)

    def reason(self, run_id: str, key: str) -> str | None:
        """Return why a value of the key has no twin; None where no reason is known."""
        with self._lock:
            covered = self._of(run_id).keys.get(key)
            return None if covered is None else covered.reason

    def overwritten(self, run_id: str) -> dict[str, str]:
        """Return key -> reason where a value without twin took the place of one with a twin."""
        with self._lock:
            keys = self._of(run_id).keys
            return {
                key: f"{key} was logged again at its last step without it: {covered.reason}"
                for key, covered in keys.items()
                if covered.is_overwritten
            }

    def put_off(self, run_id: str, reason: str | None) -> None:
        """Note why the store did not take twins of the run; None once it has taken all."""
        with self._lock:
            self._of(run_id).put_off = reason

    def sentence(self, run_id: str) -> str | None:
        """Return what a run gained; None where it logged no metric in this process."""
        with self._lock:
            run = self._runs.get(run_id)
            return None if run is None else run.sentence()

    def _of(self, run_id: str) -> RunCoverage:
        run = self._runs.setdefault(run_id, RunCoverage())
        self._runs.move_to_end(run_id)
        while len(self._runs) > _MAX_RUNS:
            self._runs.popitem(last=False)
        return run


def reason_in(sentence: str, key: str) -> str | None:
    """Return what the sentence of a run says of a key without twin; None where it is silent.

    Examples
    --------
    >>> reason_in("twins of a; none of b, c: it is rounded; none of d: unknown. For a loss", "c")
    'it is rounded'
    """
    said, _, _ = sentence.partition(f" {ADVICE}")
    for part in said.removesuffix(".").split("none of ")[1:]:
        keys, _, reason = part.partition(": ")
        if key in keys.split(", "):
            return reason.removesuffix("; ").rstrip(".")
    return None


def _listed(keys: Iterable[str]) -> str:
    names = list(keys)
    shown = ", ".join(names[:_SHOWN_KEYS])
    return shown if len(names) <= _SHOWN_KEYS else f"{shown} and {len(names) - _SHOWN_KEYS} more"


def _advice() -> str:
    """Return what to call instead, with the callbacks of the frameworks that are in use."""
    callbacks = [name for module, name in _CALLBACKS.items() if module in sys.modules]
    given = f", or give the training trueup_mlflow.{' or '.join(callbacks)}" if callbacks else ""
    return f"{ADVICE}{given}."


def explain(number: float, seen: Iterable[float]) -> str:
    """Return why a number is none of those that losses have returned, nor a mean of them."""
    for known in seen:
        digits = rounded_digits(number, known)
        if digits is not None:
            rounded = f"rounded to {digits} digit{'' if digits == 1 else 's'}"
            return f"it is a watched loss {rounded}: log it unrounded, as the function returned it"
        if number == _as_float32(known):
            return FLOAT32
        if number == -known:
            return "it is minus a watched loss: log the loss itself"
        if math.isclose(number, known, rel_tol=_CLOSE):
            return NEAR
        if math.isfinite(known) and known < 100 and math.isclose(number, math.exp(known)):
            return "it is exp of a watched loss: log the loss itself"
    return UNKNOWN


def _as_float32(number: float) -> float:
    """Return the float32 next to a number; infinity beyond all of them."""
    if not abs(number) < _MOST_FLOAT32:
        return math.inf
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded


def rounded_digits(number: float, known: float) -> int | None:
    """Return to how many digits a known number was rounded; None where it was not.

    Zeros at the end are digits too, though a number that was logged does not show them: of several
    answers the one is given that people choose most.

    Examples
    --------
    >>> rounded_digits(0.534, 0.53402), rounded_digits(0.5, 0.49998), rounded_digits(0.5, 0.52)
    (4, 4, None)
    """
    if number == known or not number or not math.isfinite(known):
        return None
    fewest = 3 if abs(number) < 1_000.0 else 1  # fewer may be chance
    fitting = (
        digits
        for digits in _USUAL_DIGITS
        if digits >= fewest and number in (round(known, digits), float(f"{known:.{digits}f}"))
    )
    return next(fitting, None)
