"""Whether a metric is a loss or a score, by what its name says and what the user says."""

from __future__ import annotations

import re

from trueup.errors import InvalidInputError

_SCORES = """
    acc accuracy ap auc aucpr auprc auroc bleu completeness concordance correlation corrcoef d2 dcg
    dice elbo f1 f2 fbeta fscore gini homogeneity iou jaccard kappa kendall lift likelihood loglik
    loglikelihood map mcc miou mrr ndcg pearson ppv prauc precision psnr purity r2 rand recall
    rocauc rouge score sensitivity skill spearman specificity ssim tnr top tpr
"""
_LOSSES = """
    bouldin brier cost crossentropy crps deviance divergence ece entropy err error hinge kl logloss
    loss mae mape mce mse nll perplexity pinball rce regret rmse rmsle smape wer winkler
"""
_PHRASES = re.compile(r"_(?:explained_variance|fowlkes_mallows|mutual_info|r_squared|v_measure)_")
_SKILLS = frozenset({"d2", "skill"})  # scores, of whatever loss they are
_TURNED_SCORE = re.compile(r"_one_minus_|(?<!_neg)_neg(?:ative)?_(?:log_?)?(?:lik|elbo)")
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*")


def is_score_by_name(metric: str) -> bool:
    """Return whether a word of the name says that higher is better.

    Words end at other signs than letters and digits and before capitals; the number at the end of
    one may be left out (``recall5``). A word of a loss decides against one of a score, and ``neg``
    makes it a score, as in scikit-learn's names of scorers.

    Examples
    --------
    >>> [is_score_by_name(name) for name in ("val_accuracy", "valAUC", "neg_log_loss", "r2")]
    [True, True, True, True]
    >>> [is_score_by_name(name) for name in ("val_loss", "mape", "brier_score", "1-auc")]
    [False, False, False, False]
    """
    parts = re.findall(r"[A-Za-z0-9]+", re.sub(r"^1\s*-", "one_minus_", metric))
    words = {word for part in parts for word in (part, *_WORD.findall(part))}
    named = {form.lower() for word in words for form in (word, word.rstrip("0123456789"))}
    joined = f"_{'_'.join(parts)}_".lower()
    if named.intersection(_LOSSES.split()) and not named & _SKILLS:
        return "_neg_" in joined
    found = not named.isdisjoint(_SCORES.split()) or _PHRASES.search(joined) is not None
    return found and _TURNED_SCORE.search(joined) is None


def direction(metric: str, greater_is_better: bool | None) -> bool:
    """Return what was said, or lower is better; refuse a score of which nothing was said."""
    if greater_is_better is not None:
        return greater_is_better
    if not is_score_by_name(metric):
        return False
    raise InvalidInputError(
        "metric must be a loss, of which lower is better, unless the direction is said",
        f"{metric!r}, whose name says that higher is better",
        "Pass greater_is_better=True, or greater_is_better=False where lower is better.",
    )
