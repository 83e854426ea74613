"""The long attack: ``make hostile`` prints trials and failures of every kind, with their seeds.

``python -m tests.hostile.attack --trials 6000 --first-seed 0``
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import time
from itertools import chain
from pathlib import Path

from tests.hostile.arguments import ODD_VALUES, failures, public_calls
from tests.hostile.commands import command_calls, failure_of, in_command_folder
from tests.hostile.readers import quick_targets, slow_targets, space_target, temporary_folder
from tests.hostile.tables import rows_limited, table_targets
from tests.hostile.trials import Counts, run

_ROW = "{:<34} {:>8} {:>8} {:>10} {:>9}"


def main() -> int:
    """Run all trials and return the number of failures, at most 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--trials",
        type=int,
        default=6000,
        help="of each stored kind; of tables and spaces an eighth",
    )
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--registered", action="store_true", help="commands on a monitored model, which takes hours"
    )
    options = parser.parse_args()
    began, folder = time.monotonic(), temporary_folder()
    print(_ROW.format("kind", "trials", "refused", "memory", "failures"))
    found = [_arguments(), _commands(folder, options.registered)]
    print(*map(_line, found), sep="\n", flush=True)
    with rows_limited():
        for target in chain(table_targets(folder), [space_target(folder)]):
            found.append(run(target, options.trials // 8, options.first_seed))
            print(_line(found[-1]), flush=True)
    for target in chain(quick_targets(folder), slow_targets(folder)):
        found.append(run(target, options.trials, options.first_seed))
        print(_line(found[-1]), flush=True)
    shutil.rmtree(folder)
    total = Counts("all", sum(c.trials for c in found), sum(c.refused for c in found))
    total.failures = [f"{c.name}, {failure}" for c in found for failure in c.failures]
    total.ratio = max(c.ratio for c in found)
    print(_line(total))
    print(*total.failures[:50], sep="\n")
    print(f"first seed {options.first_seed}, {time.monotonic() - began:.0f} s; memory: at most so")
    print("many times that of the honest input, or the size of the spoilt one")
    return min(len(total.failures), 1)


def _arguments() -> Counts:
    counts = Counts("arguments of public functions")
    for name, call in public_calls():
        counts.trials += len(ODD_VALUES) * len(call[1])
        counts.failures += [f"{name}: {value!r} {error!r}" for _, value, error in failures(call)]
    return counts


def _commands(folder: Path, registered: bool) -> Counts:
    counts = Counts("options of commands")
    logging.disable(logging.CRITICAL)  # MLflow and Optuna tell of each refusal
    with in_command_folder(folder, registered=registered):
        for call in command_calls():
            counts.trials += 1
            failure = failure_of(call)
            counts.failures += [] if failure is None else [f"{call}: {failure}"[:300]]
    logging.disable(logging.NOTSET)
    return counts


def _line(counts: Counts) -> str:
    ratio = f"{counts.ratio:.1f}x" if counts.ratio else "-"
    refused = counts.refused or "-"
    return _ROW.format(counts.name, counts.trials, refused, ratio, len(counts.failures))


if __name__ == "__main__":
    sys.exit(main())
