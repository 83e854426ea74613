from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from tests.databases import new_database

from trueup.comparison import compare as compare_values
from trueup_cli.compare import EXIT_CODES, compare, figure_link, gate_outcome

METRIC = "calibrated_val_log_loss"
NOISE = np.random.default_rng(2).normal(0.0, 0.01, (3, 10))
JITTER = np.random.default_rng(3).normal(0.0, 0.02, 10)
VALUES = {
    "mlp": dict(enumerate(0.50 + NOISE[0])),
    "deep": dict(enumerate(0.46 + NOISE[0] + 0.3 * NOISE[1])),
    "twin": dict(enumerate(0.50 + NOISE[0] + 0.3 * NOISE[2])),
    "short": dict(enumerate(0.495 + NOISE[0, :4] + 0.3 * NOISE[2, :4])),
}


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    uri = new_database(folder)
    client = MlflowClient(uri)
    experiment = client.create_experiment("ctr", artifact_location=(folder / "files").as_uri())
    for model, values in VALUES.items():
        for seed, value in values.items():
            tags = {"trueup.fingerprint.val_log_loss": "f0"}
            run_id = client.create_run(experiment, tags=tags).info.run_id
            client.log_param(run_id, "model", model)
            client.log_param(run_id, "seed", seed)
            client.log_metric(run_id, METRIC, value)
            client.log_metric(run_id, METRIC.removeprefix("calibrated_"), value + JITTER[seed])
            client.set_terminated(run_id)
    for seed in range(10):
        for model in ("own", "owner"):
            tags = {"trueup.fingerprint.val_log_loss": f"f{seed}"}
            run_id = client.create_run(experiment, tags=tags).info.run_id
            client.log_param(run_id, "model", model)
            client.log_param(run_id, "seed", seed)
            client.log_metric(run_id, METRIC, VALUES["deep" if model == "own" else "mlp"][seed])
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


def test_undecided_candidate_is_no_failure_without_the_gate(run):
    result = run("short", "mlp", "--no-gate")
    assert result.exit_code == 0
    assert "Inconclusive" in result.stdout


def test_seeds_scored_on_rows_of_their_own_have_an_exit_code(run):
    result = run("own", "owner")
    assert result.exit_code == 4
    assert "a split drawn from the seed" in result.stdout
    assert run("own", "owner", "--allow-mismatch").exit_code == 0


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


def test_a_score_is_refused_until_its_direction_is_said(tmp_path):
    uri = new_database(tmp_path)
    client = MlflowClient(uri)
    experiment = client.create_experiment("acc", artifact_location=(tmp_path / "f").as_uri())
    for model, start in (("a", 0.81), ("b", 0.79)):
        for seed in range(8):
            tags = {"trueup.fingerprint.val_accuracy": "f0"}
            run_id = client.create_run(experiment, tags=tags).info.run_id
            client.log_param(run_id, "model", model)
            client.log_param(run_id, "seed", seed)
            client.log_metric(run_id, "val_accuracy", start + NOISE[0, seed] / 10.0)
            client.set_terminated(run_id)
    asked = ("--metric", "val_accuracy", "--tracking-uri", uri)

    def compared(*options):
        return CliRunner().invoke(
            compare, ["params.model = 'a'", "params.model = 'b'", *asked, *options]
        )

    refused = compared()
    assert refused.exit_code == 2
    assert "--metric must be a loss" in refused.output
    assert "Pass --greater-is-better, or --lower-is-better where" in refused.output
    higher = compared("--greater-is-better")
    assert higher.exit_code == 0
    assert "(higher is better)" in higher.stdout
    assert compared("--lower-is-better").exit_code == 1


def many(uri, *arguments):
    filters = [f"params.model = '{name}'" for name in arguments if name in VALUES]
    options = [argument for argument in arguments if argument not in VALUES]
    return CliRunner().invoke(compare, [*filters, "--tracking-uri", uri, *options])


def test_markdown_has_the_verdict_first_then_a_table(uri):
    names = ("--names", "Deep|FM, MLP @team")
    result = many(uri, "deep", "mlp", "--metric", METRIC, "--markdown", *names)
    assert result.exit_code == 0, result.output
    verdict, _, head, rule, row, _, *basis = result.stdout.splitlines()
    assert verdict.startswith("**gate better: passed.** Deep\\|FM beats MLP @\u200bteam in 100% of")
    assert head.count("|") == rule.count("|") == row.count("|") - row.count("\\|")
    assert "/trueup/comparison.png`" in row
    assert "at any time" in basis[0]


def test_a_server_gives_a_link_to_the_figure():
    assert figure_link("http://host:5000/", "r1") == (
        "[figure](http://host:5000/get-artifact?path=trueup/comparison.png&run_uuid=r1)"
    )


def test_many_candidates_pay_for_the_choice_of_the_best(uri):
    result = many(
        uri, "twin", "deep", "mlp", "--metric", METRIC, "--names", "twin,DeepFM,MLP", "--json"
    )
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    twin, deep = content["decisions"]
    assert (content["gate"], twin["gate"], deep["gate"]) == ("passed", "inconclusive", "passed")
    alone = compare_values(VALUES["deep"], VALUES["mlp"], confidence_level=0.975)
    assert (deep["low"], deep["high"]) == (alone.low, alone.high)
    assert "so that all hold together" in content["remarks"][0]
    told = many(uri, "twin", "deep", "mlp", "--metric", METRIC, "--markdown").stdout
    assert told.startswith("**gate better: passed.** candidate 2 beats baseline")


def test_both_metrics_are_told_with_their_noise_and_the_gate_asks_for_both(uri):
    result = many(uri, "deep", "mlp", "--metric", "both")
    vanilla, calibrated, *rest = result.stdout.splitlines()
    assert vanilla.startswith("val_log_loss: ")
    assert calibrated.startswith("calibrated_val_log_loss: ")
    assert any("times the sd of the vanilla ones" in line for line in rest)
    told = many(uri, "deep", "mlp", "--metric", "both", "--markdown").stdout.splitlines()
    assert told[0] == f"**gate better: passed.** {vanilla}"
    assert f"- {calibrated}" in told
    split = many(uri, "twin", "mlp", "--metric", "val_log_loss", "--metric", METRIC,
                 "--gate", "not-worse", "--min-effect", "0.01", "--json")  # fmt: skip
    outcomes = {d["metric"]: d["gate"] for d in json.loads(split.stdout)["decisions"]}
    assert set(outcomes) == {"val_log_loss", METRIC}
    assert (
        EXIT_CODES["passed" if set(outcomes.values()) == {"passed"} else "inconclusive"]
        == split.exit_code
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("deep", "--metric", METRIC), "CANDIDATE and BASELINE must both be given; got 1"),
        (
            ("deep", "mlp", "--metric", METRIC, "--names", "A"),
            "--names must hold 2 different names",
        ),
        (("deep", "mlp", "--metric", METRIC, "--names", "A,A"), "--names must hold 2 different"),
        (
            ("deep", "mlp", "--metric", METRIC, "--json", "--markdown"),
            "--markdown must be left out",
        ),
    ],
)
def test_what_does_not_fit_together_is_named(uri, arguments, message):
    result = many(uri, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
