"""Studies on a database whose processes are killed, resumed until they are done, and counted.

``python -m tests.hostile.kills --url postgresql+psycopg://... --studies 18`` prints the table.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from uuid import uuid4

import optuna
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from tests.trueup_cli.tune_script import SCRIPT, SPACE, arguments
from tests.warm import PYTHON

from trueup_optuna.study.ranking import CONFIG, SEED_INDEX
from trueup_optuna.study.trial_state import configurations, seed_records

TRIALS = 6  # of `arguments`
_COMMAND = "from trueup_cli.tune.command import tune; tune()"
_OPTIONS = ("--workers", "2", "--grace", "3")
_LONGEST = 250.0


def killed_study(url: str, folder: Path, seed: int, kills: int = 1) -> list[str]:
    """Kill a study so many times at random moments, resume it, and return what is wrong then."""
    rng, name = Random(seed), f"kills-{uuid4().hex[:8]}"
    (folder / "my_script.py").write_text(SCRIPT.format(pause=0.05))
    (folder / "space.yaml").write_text(SPACE)
    given = arguments("--storage", url, "--study-name", name, *_OPTIONS)
    storage = RDBStorage(url)
    try:
        for number in range(kills):
            run = _begun(folder, [*given, *["--resume"] * (number > 0)])
            _kill(run, storage, name, rng.uniform(0.0, 1.5))
        done = _begun(folder, [*given, "--resume"])
        output, _ = done.communicate(timeout=_LONGEST)
        if done.returncode:
            return [f"exit code {done.returncode}: {output[-500:]}"]
        return _wrong(storage, name)
    finally:
        storage.engine.dispose()


def _begun(folder: Path, given: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYTHON, "-c", _COMMAND, *given],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _kill(run: subprocess.Popen[str], storage: RDBStorage, name: str, seconds: float) -> None:
    """Kill all processes of a run, so long after it has done something."""
    before, end = _seeds(storage, name), time.monotonic() + _LONGEST
    while _seeds(storage, name) == before and run.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(seconds)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=_LONGEST)


def _seeds(storage: RDBStorage, name: str) -> int:
    try:
        trials = _study(storage, name).trials
    except KeyError:  # not there yet
        return 0
    return sum(len(seed_records(trial.user_attrs)) for trial in trials)


def _study(storage: RDBStorage, name: str) -> optuna.Study:
    return optuna.load_study(study_name=name, storage=storage)


def _wrong(storage: RDBStorage, name: str) -> list[str]:
    study, found = _study(storage, name), []
    standing = configurations(study.trials)
    finished = study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED))
    if not len(standing) == len(finished) == TRIALS:
        found.append(f"{len(standing)} configurations, {len(finished)} finished, of {TRIALS}")
    if len({trial.params["x"] for trial in standing}) != len(standing):
        found.append("a configuration is there twice")
    if study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING)):
        found.append("a trial is left open")
    finals = _study(storage, f"{name}::finals").get_trials(states=(TrialState.COMPLETE,))
    keys = [(trial.user_attrs[CONFIG], trial.user_attrs[SEED_INDEX]) for trial in finals]
    if len(set(keys)) != len(keys):
        found.append("a seed of the finals is there twice")
    return found


def main() -> int:
    """Print what came of each study; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="a database of PostgreSQL")
    parser.add_argument("--studies", type=int, default=18)
    parser.add_argument("--kills", type=int, default=1, help="of each study")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.studies):
        with tempfile.TemporaryDirectory() as folder:
            wrong = killed_study(options.url, Path(folder), seed, options.kills)
        failed += bool(wrong)
        print(f"study {seed}: {wrong or 'as it should be'}", flush=True)
    print(f"{options.studies} studies, {options.kills} kills each, {failed} wrong")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
