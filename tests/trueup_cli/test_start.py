"""A command loads what it uses: most of the time of a short one is its imports."""

from __future__ import annotations

import subprocess
import sys

UNUSED = {"scipy", "pandas", "tqdm", "mlflow", "optuna", "torch", "sklearn", "matplotlib"}


def test_evaluating_a_small_file_loads_numpy_and_arrow_alone(tmp_path):
    file = tmp_path / "predictions.csv"
    file.write_text("click,p\n" + "0,0.2\n1,0.6\n" * 200)
    code = (
        "import sys; from trueup_cli.app import app; "
        f"app(['evaluate', {str(file)!r}, '--target', 'click', '--proba', 'p'], "
        "standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "calibrated_log_loss" in run.stdout
    loaded = {name.partition(".")[0] for name in run.stderr.split()}
    assert loaded.isdisjoint(UNUSED), loaded & UNUSED
