"""Monitor registered models: estimated error before labels arrive, realized error after.

The scheduler is the user's own: a cron job or an orchestrator calls :func:`estimate` with each
batch. No estimate sees a change of the target given the features; :func:`realize` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup_mlflow.monitor.batch.batches import estimate_chunks as estimate_chunks
    from trueup_mlflow.monitor.batch.batches import estimate_periods as estimate_periods
    from trueup_mlflow.monitor.batch.batches import init_missing as init_missing
    from trueup_mlflow.monitor.batch.watching import watch as watch
    from trueup_mlflow.monitor.check.init import init as init
    from trueup_mlflow.monitor.judging.gates import status as status
    from trueup_mlflow.monitor.operations import compare as compare
    from trueup_mlflow.monitor.operations import estimate as estimate
    from trueup_mlflow.monitor.operations import records as records
    from trueup_mlflow.monitor.operations import report as report
    from trueup_mlflow.monitor.realizing import realize as realize
    from trueup_mlflow.monitor.segments import estimate_segments as estimate_segments
    from trueup_mlflow.monitor.session import Session as Session

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
