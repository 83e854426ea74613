"""What a run gains: every metric key and tag of trueup, without MLflow.

``K`` stands for the key of the vanilla metric: prefix + loss, or the user's own key under autolog.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from trueup import Evaluation, __version__
from trueup.arguments import check_fraction
from trueup.errors import InvalidInputError
from trueup.redact import without_credentials

SPLIT_TAG = "trueup.split"
VERSION_TAG = "trueup.version"
ROLE_TAG = "trueup.role"
SEED_TAG = "trueup.seed"
STUDY_TAG = "trueup.study"
TRIAL_TAG = "trueup.trial"
STATUS_TAG = "trueup.status"
RESAMPLING_TAG = "trueup.resampling"
FOLD_TAG = "trueup.fold"
COVERAGE_TAG = "trueup.coverage"
SEED_ROWS_TAG = "trueup.seed_rows"
PROCESS_TAG = "trueup.process"
STUDY_ROLE = "study"
SEED_PARENT_ROLE = "seed_parent"
COMPARISON_ROLE = "comparison"
RESAMPLING_ROLE = "resampling"
SCORING_ROLE = "scoring"
ARTIFACT_FOLDER = "trueup"
COUNT_KEY = "n_seeds"
SPREAD_ENDS = ("_std", "_low", "_high")
"""What seeds add to ``K`` on their parent: standard deviation, and ends of an interval."""
MAX_KEY_LENGTH = 250
"""MLflow's limit for the keys of metrics and tags."""

_MAX_REASON_LENGTH = 1000
_MAX_CLASSES = 100  # each metric key costs a request when a model is logged
_NOT_IN_FILE = re.compile(r"[^\w\-.]", re.ASCII)
_NOT_IN_KEY = re.compile(r"[^\w\-. :/]", re.ASCII)


@dataclass(frozen=True)
class LogItems:
    """Metrics and tags that one result adds to a run."""

    key: str  # ``K``, the key of the vanilla metric that the items belong to
    metrics: Mapping[str, float]  # finite values only
    # tags of the result, without those of ``skipped``
    tags: Mapping[str, str] = field(default_factory=dict)
    # keys that have no value, with the reason
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_tags(self) -> dict[str, str]:
        """Tags of the result and ``trueup.skipped.<key>`` of each skipped key."""
        reasons = {skipped_tag(key): reason for key, reason in self.skipped.items()}
        return {**self.tags, **{tag: text[:_MAX_REASON_LENGTH] for tag, text in reasons.items()}}


def is_of_ours(tags: Mapping[str, str]) -> bool:
    """Return whether trueup made a run for a result of its own, so that no pipeline trained it.

    Examples
    --------
    >>> is_of_ours({"trueup.role": "scoring"}), is_of_ours({"trueup.role": "seed_parent"})
    (True, False)
    """
    return tags.get(ROLE_TAG, SEED_PARENT_ROLE) != SEED_PARENT_ROLE or FOLD_TAG in tags


def metric_key(loss: str, prefix: str = "") -> str:
    """Return ``K`` of a loss."""
    return prefix + loss


def calibrated_key(key: str) -> str:
    """Return the key of the calibrated value of ``K``."""
    return f"calibrated_{key}"


def bias_term_key(key: str, index: int | None = None) -> str:
    """Return the key of the bias term of ``K``, of one class where an index is given."""
    return f"bias_term_{key}" if index is None else f"bias_term_{key}_{index}"


def bias_cost_key(key: str) -> str:
    """Return the key of what the bias costs."""
    return f"bias_cost_{key}"


def is_own_key(key: str) -> bool:
    """Return whether a key is one that trueup puts beside some ``K``."""
    return key.startswith((calibrated_key(""), bias_term_key(""), bias_cost_key("")))


def field_key(kind: str, name: str, prefix: str = "", among: Iterable[str] = ()) -> str:
    """Return the key of the "ece", "rce" or "floor" of a field.

    Characters that MLflow refuses in a key become ``_``; where another field of ``among`` then has
    the same key, a digest of the name follows.
    """
    wanted = f"{prefix}field_{kind}_{name}"
    key = _legal(wanted)
    others = {_legal(f"{prefix}field_{kind}_{other}") for other in among if other != name}
    if key == wanted or key not in others:
        return key
    digest = blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{key[: MAX_KEY_LENGTH - len(digest) - 1]}_{digest}"


def fingerprint_tag(key: str) -> str:
    """Return the tag that says which rows and split the values of ``K`` come from."""
    return f"trueup.fingerprint.{key}"


def skipped_tag(key: str) -> str:
    """Return the tag that says why a key has no value; legal even where the key is not."""
    return _legal(f"trueup.skipped.{key}")


def late_tag(key: str) -> str:
    """Return the tag that says that the calibrated value beside ``K`` is of an earlier value."""
    return _legal(f"trueup.late.{key}")


def cells_key(key: str) -> str:
    """Return what the cells of the fields of ``K`` go by where they are skipped."""
    return f"fields_{key}"


def figure_file(name: str, key: str) -> str:
    """Return the file of a figure of ``K``, in the artifact folder."""
    return f"{_legal_stem(name, key)}.png"


def table_file(name: str, key: str) -> str:
    """Return the file of a table of ``K``, in the artifact folder."""
    return f"{_legal_stem(name, key)}.parquet"


def evaluation_items(
    evaluation: Evaluation,
    *,
    prefix: str = "",
    key: str | None = None,
    vanilla: bool = True,
    root: bool = False,
) -> LogItems:
    """Return the metrics and tags of one evaluation.

    ``prefix`` is put before the loss and before the keys of fields; ``key`` is ``K`` itself, where
    the user chose it. Without ``vanilla`` the user has logged that value. With ``root`` ``K`` is
    the square root of the loss (RMSE): the calibrated value and the bias cost are then those of the
    root; the bias term stays in units of the target.
    """
    name = metric_key(evaluation.spec.loss, prefix) if key is None else key
    return _finite(
        name,
        {
            **({name: _rooted(evaluation.vanilla, root)} if vanilla else {}),
            calibrated_key(name): _rooted(evaluation.calibrated, root),
            bias_cost_key(name): _bias_cost(evaluation, root),
            **_bias_terms(evaluation, name),
            **_field_values(evaluation, prefix),
        },
        tags={
            SPLIT_TAG: evaluation.spec.split,
            fingerprint_tag(name): evaluation.fingerprint,
            VERSION_TAG: __version__,
        },
        skipped=_skipped_bias_terms(evaluation, name),
    )


def skipped_items(key: str, reason: str) -> LogItems:
    """Return the tag that says why ``K`` has no calibrated value."""
    return LogItems(key, {}, {VERSION_TAG: __version__}, {key: reason})


def seed_items(key: str, values: Sequence[float], *, confidence_level: float = 0.95) -> LogItems:
    """Return what the parent of seeds gains for one metric of its children.

    ``K`` is the mean over seeds, ``K_std`` the sample standard deviation, ``K_low`` and ``K_high``
    the ends of Student's t interval of the mean, ``n_seeds`` their number. One seed has no
    standard deviation and no interval.

    Raises InvalidInputError if there is no value, or the confidence level is not in (0, 1).
    """
    from scipy.special import stdtrit  # loads longer than an evaluation takes

    if not values:
        raise InvalidInputError(
            f"values must hold the {key!r} of at least one seed", "none", "Log it in each seed."
        )
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")
    n = len(values)
    metrics = {COUNT_KEY: float(n)}
    with np.errstate(over="ignore", invalid="ignore"):  # a value of a seed may be infinite
        mean = float(np.mean(values))
        metrics[key] = mean
        if n > 1:
            std = float(np.std(values, ddof=1))
            margin = float(stdtrit(n - 1, 0.5 + confidence_level / 2.0)) * std / math.sqrt(n)
            spread = (std, mean - margin, mean + margin)
            metrics |= {key + end: value for end, value in zip(SPREAD_ENDS, spread, strict=True)}
    return _finite(key, metrics)


def _legal(key: str) -> str:
    return _NOT_IN_KEY.sub("_", without_credentials(key))[:MAX_KEY_LENGTH]


def _legal_stem(name: str, key: str) -> str:
    return f"{name}_{_NOT_IN_FILE.sub('_', without_credentials(key))}"


def _rooted(value: float, root: bool) -> float:
    return math.sqrt(value) if root else value


def _bias_cost(evaluation: Evaluation, root: bool) -> float:
    scored = _rooted(evaluation.vanilla_on_scored_rows, root)
    return scored - _rooted(evaluation.calibrated, root)


def _bias_terms(evaluation: Evaluation, key: str) -> dict[str, float]:
    bias = evaluation.bias_term
    if not isinstance(bias, tuple):
        return {bias_term_key(key): bias}
    if len(bias) > _MAX_CLASSES:
        return {}
    return {bias_term_key(key, index): term for index, term in enumerate(bias)}


def _skipped_bias_terms(evaluation: Evaluation, key: str) -> dict[str, str]:
    bias = evaluation.bias_term
    if not isinstance(bias, tuple) or len(bias) <= _MAX_CLASSES:
        return {}
    return {bias_term_key(key): f"more than {_MAX_CLASSES} classes: read Evaluation.bias_term"}


def _field_values(evaluation: Evaluation, prefix: str) -> dict[str, float]:
    return {
        field_key(kind, name, prefix, evaluation.fields): getattr(measured, kind)
        for name, measured in evaluation.fields.items()
        for kind in ("ece", "rce", "floor")
    }


def _finite(
    key: str,
    values: Mapping[str, float],
    tags: Mapping[str, str] | None = None,
    skipped: Mapping[str, str] | None = None,
) -> LogItems:
    """Turn values that are not finite into reasons: MLflow would store NaN as 0.0 on a model."""
    reasons = {name: f"value is {value}" for name, value in values.items() if value - value != 0.0}
    metrics = {name: float(value) for name, value in values.items() if name not in reasons}
    return LogItems(key, metrics, tags or {}, {**(skipped or {}), **reasons})
