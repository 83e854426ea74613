"""A command loads what it uses: most of the time of a short one is its imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


@pytest.mark.parametrize(("command", "seldom"), [("monitor", True), ("tune", False)])
def test_garbage_is_looked_for_seldom_but_where_the_users_code_runs(command, seldom):
    code = (
        f"import gc, sys; sys.argv[1:] = [{command!r}, '--help']; usual = gc.get_threshold()\n"
        "from trueup_cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert gc.isenabled(); print(gc.get_threshold() > usual, gc.get_freeze_count())\n"
        "import atexit; atexit._run_exitfuncs(); print(gc.get_freeze_count() > 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-2:] == [f"{seldom} 0", str(seldom)]
