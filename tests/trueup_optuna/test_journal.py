from __future__ import annotations

import os
import subprocess

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from tests.warm import PYTHON

from trueup_optuna.runtime.journal import open_journal

WRITER = """
import sys, optuna
from trueup_optuna.runtime.journal import open_journal
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name="s", storage=open_journal(sys.argv[1]))
for step in range(100):
    study.set_user_attr(f"{sys.argv[2]}-{step}", step)
"""

FORKED = """
import os, sys, optuna
from trueup_optuna.runtime.journal import open_journal
study = optuna.create_study(study_name="s", storage=open_journal(sys.argv[1]))
study.add_trial(optuna.create_trial(value=0.0))
child = os.fork()
if child == 0:
    try:
        study._storage.set_trial_user_attr(study.trials[0]._trial_id, "late", 1)
    except optuna.exceptions.UpdateFinishedTrialError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
print(len(study.trials))
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "study.journal"
    study = optuna.create_study(study_name="s", storage=open_journal(path))
    writers = [subprocess.Popen([PYTHON, "-c", WRITER, path, name]) for name in "abc"]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0, 0]
    expected = {f"{name}-{step}": step for name in "abc" for step in range(100)}
    assert study.user_attrs == expected
    own = JournalStorage(JournalFileBackend(str(path)))
    assert optuna.load_study(study_name="s", storage=own).user_attrs == expected


def test_a_line_that_a_dying_writer_left_torn_is_dropped(tmp_path):
    path = tmp_path / "study.journal"
    study = optuna.create_study(study_name="s", storage=open_journal(path))
    study.set_user_attr("before", 1)
    with path.open("ab") as file:
        file.write(b'{"op_code":2,"worker')
    assert study.user_attrs == {"before": 1}
    study.set_user_attr("after", 2)
    again = optuna.load_study(study_name="s", storage=open_journal(path))
    assert study.user_attrs == again.user_attrs == {"before": 1, "after": 2}


@pytest.mark.skipif(  # open_journal gives Optuna's own storage there: nothing of ours would run
    not hasattr(os, "fork"), reason="no fork on this system"
)
def test_a_forked_process_is_another_worker(tmp_path):
    """With one name for both, what is refused to the child would be raised in the parent."""
    path = tmp_path / "study.journal"
    run = subprocess.run([PYTHON, "-c", FORKED, path], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "1\n"
