"""A calibrated value is read only where it is of the step that its metric ends with."""

from __future__ import annotations

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from tests.databases import new_database

from trueup.errors import InvalidInputError, TrueupWarning
from trueup_mlflow import compare_runs
from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.seeds.log_seeds import log_seed_summary
from trueup_mlflow.write.late_twins import late_twins
from trueup_ui.view.compare import Asked, compare_page
from trueup_ui.view.experiment import Choice, experiment_page

OWN = ("calibrated_loss", "bias_cost_loss", "bias_term_loss")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return MlflowClient(new_database(tmp_path_factory.mktemp("store")))


@pytest.fixture
def experiment(client, request):
    return client.create_experiment(request.node.name)


def log(client, experiment, model, seed, *, last_twin, last=3, own=OWN, parent=None):
    tags = {"trueup.fingerprint.loss": "f", "trueup.seed": str(seed)}
    tags |= {"mlflow.parentRunId": parent} if parent else {}
    run_id = client.create_run(experiment, tags=tags).info.run_id
    points = [Metric("loss", 0.5 + 0.01 * seed, step, step) for step in range(last + 1)]
    points += [Metric(key, 0.4, step, step) for key in own for step in range(last_twin + 1)]
    params = [Param("model", model), Param("seed", str(seed))]
    client.log_batch(run_id, points, params)
    client.set_terminated(run_id)
    return run_id


def pipelines(client, experiment, last_twin):
    for seed in range(5):
        log(client, experiment, "deep", seed, last_twin=3)
        log(client, experiment, "wide", seed, last_twin=last_twin if seed == 4 else 3)


@pytest.mark.parametrize("last_twin", [0, 2])
def test_all_that_stands_beside_a_metric_is_late_where_the_metric_went_on(
    client, experiment, last_twin
):
    own = ("calibrated_loss", "bias_cost_loss", "bias_term_loss_0", "bias_term_loss_11")
    run = client.get_run(log(client, experiment, "a", 0, last_twin=last_twin, own=own))
    said = f"it is of step {last_twin}, and loss of step 3"
    assert late_twins(run) == dict.fromkeys(own, said)
    assert StoredRun.of(run).metrics.keys() == {"loss"}


def test_nothing_is_late_at_the_last_step_and_without_a_metric_of_that_name(client, experiment):
    run = client.get_run(log(client, experiment, "a", 0, last_twin=3))
    assert late_twins(run) == {}
    assert StoredRun.of(run).metrics.keys() == {"loss", *OWN}
    alone = client.create_run(experiment).info.run_id
    client.log_metric(alone, "calibrated_other", 0.4, step=2)
    client.log_metric(alone, "loss", 0.4, step=3)
    assert late_twins(client.get_run(alone)) == {}


@pytest.mark.parametrize("options", [{}, {"allow_failed": True}])
def test_comparison_of_calibrated_values_names_the_run_and_both_steps(client, experiment, options):
    pipelines(client, experiment, last_twin=1)
    names = [client.get_experiment(experiment).name]
    asked = {"experiment_names": names, "client": client, **options}
    with pytest.raises(InvalidInputError, match="of step 1, and loss of step 3") as refusal:
        compare_runs(
            "params.model = 'deep'", "params.model = 'wide'", metric="calibrated_loss", **asked
        )
    assert "baseline seed 4" in str(refusal.value)
    vanilla = compare_runs("params.model = 'deep'", "params.model = 'wide'", metric="loss", **asked)
    assert vanilla.n_pairs == 5


def test_pages_show_no_late_value_and_say_why(client, experiment):
    pipelines(client, experiment, last_twin=1)
    runs = [StoredRun.of(run) for run in client.search_runs([experiment])]
    rows = {row.seeds.pipeline.name: row.seeds for row in experiment_page(runs, Choice()).rows}
    assert len(rows["model = deep"].calibrated.values) == 5
    assert len(rows["model = wide"].calibrated.values) == 4
    (said,) = [text for text in rows["model = wide"].warnings if "no calibrated value" in text]
    assert said == "no calibrated value in 1 run: it is of step 1, and loss of step 3"
    page = compare_page(runs, Asked(metric="calibrated_loss"))
    assert "of step 1, and loss of step 3" in page.figure.pair.refusal
    assert compare_page(runs, Asked(metric="loss")).figure.pair.comparison is not None


def test_parent_of_seeds_does_not_summarise_late_values_and_says_so(client, experiment):
    parent = client.create_run(experiment).info.run_id
    for seed in range(3):
        log(client, experiment, "a", seed, last_twin=3 - seed, parent=parent)
    with pytest.warns(TrueupWarning, match="calibrated_loss is not summarised: in 2 of 3 seeds"):
        assert log_seed_summary(parent, client=client)
    metrics = client.get_run(parent).data.metrics
    assert "loss_std" in metrics
    assert not any(key.startswith("calibrated_") for key in metrics)
