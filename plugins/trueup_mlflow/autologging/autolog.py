"""One line that gives every logged loss its calibrated twin."""

from __future__ import annotations

from trueup import Split
from trueup_mlflow.autologging import session
from trueup_mlflow.autologging.calibrated_metrics import TwinOptions

_DEFAULT = TwinOptions()


def autolog(
    *,
    disable: bool = False,
    split: Split = _DEFAULT.split,
    torch: bool = True,
    exclude: tuple[str, ...] = _DEFAULT.exclude,
) -> None:
    """Log the calibrated metric beside each loss of scikit-learn, torch, torchmetrics and boosters.

    Parameters
    ----------
    disable : bool, default False
        Switch autologging off and take every hook off.
    split : Split, default CrossFit(5)
        Which rows fit the bias and which are scored; a row is identified by its position.
    torch : bool, default True
        Watch the losses of torch, for what validation loops make of them.
    exclude : tuple of str, default ("training_", "system/")
        Metrics whose keys start like this gain nothing.

    Notes
    -----
    ``log_loss``, ``brier_score_loss``, ``mean_squared_error`` and ``root_mean_squared_error`` of
    scikit-learn are watched, through whatever name they are called, and ``cross_entropy``,
    ``nll_loss``, ``binary_cross_entropy``, ``binary_cross_entropy_with_logits`` and ``mse_loss`` of
    torch with the modules of these losses, where no gradients are computed. When a number that one
    of them returned (or the root of a squared error, or the mean of the batches of a validation
    pass) is logged as ``K``, ``calibrated_K``, ``bias_term_K`` and ``bias_cost_K`` go into the same
    request, with the same run, step, timestamp, model and data set, and the run gains the tags
    ``trueup.split``, ``trueup.fingerprint.K`` and ``trueup.version``. ``K`` itself is not touched.
    Where there is no calibrated value, the tag ``trueup.skipped.K`` holds the reason.

    At the end of a run one line on stderr and the tag ``trueup.coverage`` say which metrics have
    twins, which have none and why; ``trueup doctor RUN_ID`` prints it later.

    Recognised is the number itself: not after rounding, not ``1 - value``, not the mean of several
    folds. ``log_evaluation`` has no such limits. Numbers of at most four significant digits are
    left alone, because another metric may have the same value.

    The evaluation happens when the number is logged. Until then the labels and predictions of the
    latest calls are kept, up to 256 MiB of them, and as much for torch.

    Examples
    --------
    >>> import mlflow
    >>> from sklearn.metrics import log_loss
    >>> from trueup_mlflow import autolog
    >>> autolog()
    >>> with mlflow.start_run() as run:
    ...     mlflow.log_metric("loss", log_loss([0, 1] * 50, [0.3, 0.8] * 50))
    >>> autolog(disable=True)
    >>> sorted(mlflow.get_run(run.info.run_id).data.metrics)
    ['bias_cost_loss', 'bias_term_loss', 'calibrated_loss', 'loss']
    """
    if disable:
        session.stop()
    else:
        session.start(TwinOptions(split=split, exclude=tuple(exclude)), torch=torch)
