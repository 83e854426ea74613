from __future__ import annotations

import subprocess
import sys

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from trueup_optuna.journal import open_journal

WRITER = """
import sys, optuna
from trueup_optuna.journal import open_journal
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name="s", storage=open_journal(sys.argv[1]))
for step in range(100):
    study.set_user_attr(f"{sys.argv[2]}-{step}", step)
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "study.journal"
    study = optuna.create_study(study_name="s", storage=open_journal(path))
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, name]) for name in "abc"]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
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
