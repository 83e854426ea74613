"""What the seeds say against their summary: on the parent, in the table, as a warning."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest
from tests.warm import PYTHON

from trueup.errors import TrueupWarning
from trueup_mlflow.seeds.findings import SeedOutcome, seed_findings
from trueup_mlflow.seeds.log_seeds import log_seed_summary
from trueup_mlflow.seeds.seed_processes import end_abandoned, this_process

TAG = "trueup.fingerprint.loss"


def outcomes(losses, fingerprints=None, calibrated=None):
    return [
        SeedOutcome(
            f"seed {index}",
            {"loss": loss, **({"calibrated_loss": calibrated[index]} if calibrated else {})},
            {TAG: fingerprints[index]} if fingerprints else {},
        )
        for index, loss in enumerate(losses)
    ]


def test_equal_rows_are_said_and_nothing_else():
    found = seed_findings(outcomes([0.5, 0.6, 0.7], ["f"] * 3))
    assert (found.rows, found.notes, found.rows_differ) == ("equal", (), False)


def test_runs_without_fingerprints_say_nothing_of_rows():
    found = seed_findings(outcomes([0.5, 0.6]))
    assert (found.rows, found.notes) == ("", ())


def test_other_rows_are_named_with_cause_and_mend():
    found = seed_findings(outcomes([0.5, 0.6, 0.7], ["f", "f", "g"]))
    assert found.rows == "differ: loss"
    assert found.rows_differ
    (note,) = found.notes
    assert "loss: seed 0 and seed 2" in note
    assert "a split drawn from the seed" in note
    assert "random_state" in note


def test_seeds_that_all_give_the_same_say_that_the_seed_is_not_used():
    (note,) = seed_findings(outcomes([0.5, 0.5, 0.5])).notes
    assert note.startswith("All seeds gave the same loss: the seed is not used.")
    assert seed_findings(outcomes([0.5])).notes == ()


def test_calibrated_value_that_varies_more_beyond_chance_is_said():
    losses = [0.5 + 0.001 * i for i in range(8)]
    calibrated = [0.5 + 0.01 * ((-1) ** i) * (1 + 0.1 * i) for i in range(8)]
    (note,) = seed_findings(outcomes(losses, calibrated=calibrated)).notes
    assert "calibrated_loss varies" in note
    assert seed_findings(outcomes(losses, calibrated=losses[::-1])).notes == ()


def make_seeds(client, fingerprints):
    experiment = client.get_experiment_by_name("tests").experiment_id
    parent = client.create_run(experiment).info.run_id
    for seed, fingerprint in enumerate(fingerprints):
        tags = {"mlflow.parentRunId": parent, TAG: fingerprint, "trueup.seed": str(seed)}
        child = client.create_run(experiment, tags=tags).info.run_id
        client.log_metric(child, "loss", 0.5 + seed * 1e-3)
        client.set_terminated(child)
    return parent


def test_parent_says_that_the_rows_differ(client):
    parent = make_seeds(client, ["f", "g", "f"])
    with pytest.warns(TrueupWarning, match="scored on different rows"):
        assert log_seed_summary(parent, client=client)
    tags = client.get_run(parent).data.tags
    assert tags["trueup.seed_rows"] == "differ: loss"
    assert tags["mlflow.note.content"].startswith("3 seeds: loss 0.5010 ± 0.0010. The seeds were")


def running_parent(client, process):
    experiment = client.get_experiment_by_name("tests").experiment_id
    tags = {"trueup.role": "seed_parent", "trueup.process": process}
    parent = client.create_run(experiment, tags=tags).info.run_id
    child = client.create_run(experiment, tags={"mlflow.parentRunId": parent}).info.run_id
    return experiment, parent, child


def test_parent_whose_backend_was_killed_is_ended_with_its_seeds(client):
    code = "from trueup_mlflow.seeds.seed_processes import this_process; print(this_process())"
    dead = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True)
    experiment, parent, child = running_parent(client, dead.stdout.strip())
    assert end_abandoned(client, [experiment]) == [parent]
    assert {client.get_run(run).info.status for run in (parent, child)} == {"KILLED"}


@pytest.mark.parametrize(
    "process",
    [this_process(), f"elsewhere:{os.getpid()}:1", f"{socket.gethostname()}:x:1", ""],
    ids=["this process", "another machine", "no number", "nothing"],
)
def test_parent_whose_backend_may_live_is_left_alone(client, process):
    experiment, parent, _ = running_parent(client, process)
    assert end_abandoned(client, [experiment]) == []
    assert client.get_run(parent).info.status == "RUNNING"
