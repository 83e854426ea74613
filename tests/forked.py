"""Functions in forks of a process that has imported the libraries, which takes seconds each time.

One fork server serves all files of a test process, so its imports are named here, for all of them.
"""

from __future__ import annotations

from multiprocessing import get_context

PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        *("alembic.command", "mlflow.sklearn", "pandas", "pyarrow.parquet", "pytest"),
        *("sklearn.linear_model", "skops.io", "sqlalchemy.orm", "torch"),
        *("trueup_cli.app", "trueup_cli.tune.command", "trueup_cli.tune.run", "trueup_mlflow"),
    ]
)
