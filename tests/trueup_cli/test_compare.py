from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient

from trueup.comparison import compare as compare_values
from trueup_cli.compare import compare, gate_outcome

METRIC = "calibrated_val_log_loss"
NOISE = np.random.default_rng(2).normal(0.0, 0.01, (3, 10))
VALUES = {
    "mlp": dict(enumerate(0.50 + NOISE[0])),
    "deep": dict(enumerate(0.46 + NOISE[0] + 0.3 * NOISE[1])),
    "twin": dict(enumerate(0.50 + NOISE[0] + 0.3 * NOISE[2])),
    "short": dict(enumerate(0.495 + NOISE[0, :4] + 0.3 * NOISE[2, :4])),
}


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    uri = f"sqlite:///{folder}/mlflow.db"
    client = MlflowClient(uri)
    experiment = client.create_experiment("ctr", artifact_location=(folder / "files").as_uri())
    for model, values in VALUES.items():
        for seed, value in values.items():
            tags = {"trueup.fingerprint.val_log_loss": "f0"}
            run_id = client.create_run(experiment, tags=tags).info.run_id
            client.log_param(run_id, "model", model)
            client.log_param(run_id, "seed", seed)
            client.log_metric(run_id, METRIC, value)
            client.set_terminated(run_id)
    return uri


@pytest.fixture
def run(uri):
    def invoke(candidate, baseline, *options):
        filters = [f"params.model = '{model}'" for model in (candidate, baseline)]
        arguments = [*filters, "--metric", METRIC, "--tracking-uri", uri, *options]
        return CliRunner().invoke(compare, arguments)

    return invoke


def test_better_candidate_passes_with_a_line_that_a_person_understands(run):
    result = run("deep", "mlp", "--candidate-name", "DeepFM", "--baseline-name", "MLP")
    assert result.exit_code == 0
    expected = compare_values(VALUES["deep"], VALUES["mlp"]).sentence("DeepFM", "MLP")
    sentence, gate, logged = result.stdout.splitlines()
    assert sentence == expected
    assert gate == "gate better: passed"
    assert len(logged.removeprefix("logged to run ")) == 32
    assert "DeepFM beats MLP in 100% of 10 pairs" in result.stdout


def test_worse_candidate_fails(run):
    assert run("mlp", "deep").exit_code == 1


def test_undecided_candidate_exits_with_three_and_says_what_is_missing(run):
    result = run("short", "mlp")
    assert result.exit_code == 3
    assert "Inconclusive" in result.stdout
    assert "would settle it at 95%" in result.stdout


def test_equal_candidate_is_not_worse_by_a_margin(run):
    assert run("twin", "mlp").exit_code == 3
    result = run("twin", "mlp", "--gate", "not-worse", "--min-effect", "0.01")
    assert result.exit_code == 0
    assert "gate not-worse: passed" in result.stdout


def test_json_is_one_object(run, uri):
    result = run("deep", "mlp", "--json")
    content = json.loads(result.stdout)
    decision = compare_values(VALUES["deep"], VALUES["mlp"])
    assert {key: content[key] for key in decision.to_dict()} == decision.to_dict()
    assert (content["gate"], content["sentence"]) == ("passed", str(decision))
    logged = MlflowClient(uri).get_run(content["run_id"])
    assert logged.data.tags["trueup.verdict"] == "candidate"


def test_options_reach_the_comparison(run):
    result = run("deep", "mlp", "--json", "--paired", "no", "--greater-is-better",
                 "--confidence-level", "0.9", "--experiment-name", "ctr")  # fmt: skip
    content = json.loads(result.stdout)
    assert (content["estimand"], content["confidence_level"]) == ("all pairs", 0.9)
    assert (content["verdict"], result.exit_code) == ("baseline", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cnn", "mlp"), "candidate must match at least one run; got none"),
        (("mlp", "mlp"), "must match different runs"),
        (
            ("deep", "mlp", "--experiment-name", "nowhere"),
            "--experiment-name must name existing experiments",
        ),
        (("deep", "mlp", "--min-effect", "-1"), "--min-effect must be finite and at least 0"),
        (("de'ep", "mlp"), "candidate must be a filter that MLflow understands; got"),
        (("deep", "m'lp"), "baseline must be a filter that MLflow understands; got"),
        (("deep", "mlp", "--gate", "best"), "'best' is not one of"),
    ],
)
def test_bad_input_exits_with_two_and_names_the_fix(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_gates_differ_by_the_side_of_the_margin():
    decision = compare_values(VALUES["twin"], VALUES["mlp"], min_effect=0.01)
    assert decision.verdict == "inconclusive"
    assert gate_outcome(decision, "not-worse") == "passed"
    assert gate_outcome(decision, "better") == "failed"


def test_direction_mirrors_the_gate():
    scores = [{seed: -value for seed, value in VALUES[model].items()} for model in ("deep", "mlp")]
    decision = compare_values(*scores, greater_is_better=True)
    assert gate_outcome(decision, "better") == "passed"
