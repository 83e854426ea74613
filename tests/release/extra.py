"""Use what one extra brings, in an environment that has no other: ``python extra.py NAME...``."""

from __future__ import annotations

import sys

USES = {
    "mlflow": "from trueup_mlflow import log_evaluation, compare_runs, backfill",
    "optuna": "from trueup_optuna import SeedObjective, SeedRacePruner, finals, confirm",
    "torch": "import torch, trueup\n"
    "assert trueup.evaluate(torch.arange(100) % 2, torch.full((100,), 0.4)).n == 100",
    "sklearn": "from trueup.calibrators import PlattCalibrator\n"
    "from trueup.resampling import generalization_error\n"
    "PlattCalibrator().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])",
    "files": "import pathlib, trueup\n"
    "pathlib.Path('rows.csv').write_text('y,p\\n' + '0,0.4\\n1,0.7\\n' * 50)\n"
    "assert trueup.evaluate_files('rows.csv', y_true='y', y_proba='p').n == 100",
    "cli": "from trueup_cli.app import app\napp(['evaluate', '--help'], standalone_mode=False)",
    "spark": "from trueup_spark import evaluate",
    "monitor": "from trueup.monitoring import ConsensusEstimator\n"
    "from trueup_mlflow.monitor import init, estimate, realize",
    "ui": "from trueup_ui.web.server import local_app\nlocal_app('sqlite:///ui.db')",
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        exec(USES[name])
        print(f"trueup[{name}] works")
