from __future__ import annotations

import csv
import time

import matplotlib
import mlflow
import numpy as np
import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from tests.databases import new_database

from trueup.comparison import compare
from trueup.errors import InvalidInputError, StateMismatchError, TrueupWarning
from trueup.resampling import generalization_error
from trueup_mlflow import compare_runs, log_resampling

METRIC = "calibrated_val_log_loss"
TAG = "trueup.fingerprint.val_log_loss"
NOISE = np.random.default_rng(2).normal(0.0, 0.01, 40)
DEEP_RUNS, MLP_RUNS = "params.model = 'deep'", "params.model = 'mlp'"
BASE = {seed: 0.50 + NOISE[seed] for seed in range(8)}
DEEP = {seed: 0.46 + NOISE[seed] + 0.3 * NOISE[seed + 20] for seed in range(8)}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return MlflowClient(new_database(tmp_path_factory.mktemp("store")))


class Store:
    """A fresh experiment of one real SQLite store."""

    def __init__(self, client, name, artifacts):
        self.client, self.name = client, name
        self.experiment_id = client.create_experiment(name, artifact_location=artifacts.as_uri())

    def log(self, model, values, *, fingerprint="f0", status="FINISHED", parent=None, **extra):
        for seed, value in values.items():
            tags = {"mlflow.parentRunId": parent} if parent else {}
            if fingerprint:
                tags[TAG] = fingerprint if isinstance(fingerprint, str) else fingerprint[seed]
            run_id = self.client.create_run(self.experiment_id, tags=tags).info.run_id
            params = {"seed": seed} if parent else {"model": model, "seed": seed}
            metrics = {} if value is None else {METRIC: value, **extra.get("metrics", {})}
            self.client.log_batch(
                run_id,
                [Metric(key, number, 0, 0) for key, number in metrics.items()],
                [Param(key, str(told)) for key, told in params.items()],
            )
            self.client.set_terminated(run_id, status)
        return run_id

    def parent(self, model):
        run_id = self.client.create_run(self.experiment_id).info.run_id
        self.client.log_param(run_id, "model", model)
        self.client.log_metric(run_id, METRIC, 99.0)
        self.client.set_terminated(run_id)
        return run_id

    def compare(
        self, candidate="params.model = 'deep'", baseline="params.model = 'mlp'", **options
    ):
        options = {"metric": METRIC, "experiment_names": [self.name], **options}
        return compare_runs(candidate, baseline, client=self.client, **options)

    def comparisons(self):
        return self.client.search_runs([self.experiment_id], "tags.trueup.role = 'comparison'")

    def comparison_run(self):
        (run,) = self.comparisons()
        return run


@pytest.fixture
def store(client, request, tmp_path):
    return Store(client, request.node.name, tmp_path / "artifacts")


def test_flat_runs_give_the_decision_of_the_core(store):
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    decision = store.compare()
    assert decision == compare(DEEP, BASE)
    assert (decision.verdict, decision.estimand) == ("candidate", "paired")


def test_children_stand_for_their_parent(store):
    store.log("deep", DEEP, parent=store.parent("deep"))
    store.log("mlp", BASE, parent=store.parent("mlp"))
    assert store.compare() == compare(DEEP, BASE)


def test_parents_and_their_children_may_both_match(store):
    store.log("", DEEP, parent=(deep := store.parent("deep")))
    store.log("mlp", BASE)
    either = store.compare(candidate=f"tags.mlflow.parentRunId = '{deep}'")
    assert either == compare(DEEP, BASE)


def test_comparison_run_holds_verdict_numbers_table_and_figure(store):
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    backend = matplotlib.get_backend(auto_select=False)
    decision = store.compare()
    run = store.comparison_run()
    assert run.info.status == "FINISHED"
    assert run.data.metrics == pytest.approx(
        {
            "difference": decision.difference,
            "difference_low": decision.low,
            "difference_high": decision.high,
            "p_better": 1.0,
            "p_better_low": decision.p_better_low,
            "p_better_high": 1.0,
            "n_pairs": 8,
        }
    )
    assert run.data.params == {
        "candidate": "params.model = 'deep'",
        "baseline": "params.model = 'mlp'",
        "metric": METRIC,
    }
    ours = {key: value for key, value in run.data.tags.items() if key.startswith("trueup.")}
    assert ours == {
        "trueup.role": "comparison",
        "trueup.version": ours["trueup.version"],
        "trueup.verdict": "candidate",
        "trueup.estimand": "paired",
        "trueup.fingerprint_check": "equal",
        "trueup.failed_seeds": "",
    }
    assert run.data.tags["mlflow.note.content"] == decision.sentence("deep", "mlp")
    files = {file.path for file in store.client.list_artifacts(run.info.run_id, "trueup")}
    assert files == {"trueup/comparison.csv", "trueup/comparison.png"}
    assert matplotlib.get_backend(auto_select=False) == backend


def test_table_has_one_row_per_run(store, tmp_path):
    store.log("deep", DEEP)
    store.log("mlp", {**BASE, 11: 0.5})
    store.compare()
    run_id = store.comparison_run().info.run_id
    file = store.client.download_artifacts(run_id, "trueup/comparison.csv", str(tmp_path))
    with open(file) as stream:
        table = list(csv.DictReader(stream))
    assert list(table[0]) == ["arm", "seed", METRIC, "in_a_pair", "status", "run_id"]
    assert len(table) == 17
    assert [row["seed"] for row in table if row["in_a_pair"] == "False"] == ["11"]
    deep = {int(row["seed"]): float(row[METRIC]) for row in table if row["arm"] == "candidate"}
    assert deep == DEEP


def test_few_runs_log_no_infinite_number(store):
    store.log("deep", {0: 0.4, 1: 0.41})
    store.log("mlp", {0: 0.5, 1: 0.51})
    assert store.compare().low == -np.inf
    assert set(store.comparison_run().data.metrics) == {
        "difference", "p_better", "p_better_low", "p_better_high", "n_pairs"
    }  # fmt: skip


def test_earlier_comparison_does_not_enter_the_next(store):
    last = store.client.get_run(store.log("mlp", BASE))
    time.sleep(0.002)
    store.log("deep", DEEP)
    later = f"attributes.start_time > {last.info.start_time}"
    first, second = store.compare(later), store.compare(later)
    assert first == second
    assert len(store.comparisons()) == 2


def test_fingerprints_that_differ_at_a_seed_are_refused_by_name(store):
    store.log("deep", DEEP, fingerprint={**dict.fromkeys(DEEP, "f0"), 5: "g5"})
    store.log("mlp", BASE)
    with pytest.raises(
        StateMismatchError, match="got g5 at candidate seed 5 and f0 at baseline seed 5"
    ):
        store.compare()
    assert not store.comparisons()


def test_paired_seeds_may_have_rows_of_their_own(store):
    own = {seed: f"f{seed}" for seed in DEEP}
    store.log("deep", DEEP, fingerprint=own)
    store.log("mlp", BASE, fingerprint=own)
    assert store.compare().verdict == "candidate"
    with pytest.raises(
        StateMismatchError, match="got f0 at candidate seed 0 and f1 at baseline seed 1"
    ):
        store.compare(paired=False)


def test_mismatch_can_be_allowed_and_is_recorded(store):
    store.log("deep", DEEP, fingerprint="f1")
    store.log("mlp", BASE)
    store.compare(allow_mismatch=True)
    assert store.comparison_run().data.tags["trueup.fingerprint_check"] == "differ"


def test_one_arm_without_fingerprints_is_refused(store):
    store.log("deep", DEEP, fingerprint=None)
    store.log("mlp", BASE)
    with pytest.raises(StateMismatchError, match="got None at candidate seed 0 and f0"):
        store.compare()


def test_runs_without_any_fingerprint_warn(store):
    store.log("deep", DEEP, fingerprint=None)
    store.log("mlp", BASE, fingerprint=None)
    with pytest.warns(TrueupWarning, match="nothing says that they were scored on the same rows"):
        store.compare()
    assert store.comparison_run().data.tags["trueup.fingerprint_check"] == "none"


def test_failed_run_is_an_error_unless_allowed_and_then_recorded(store):
    store.log("deep", {seed: value for seed, value in DEEP.items() if seed != 3})
    run_id = store.log("deep", {3: None}, status="FAILED")
    store.log("mlp", BASE)
    with pytest.raises(InvalidInputError, match=rf"got run {run_id} \(FAILED\) at seed 3. Rerun"):
        store.compare()
    decision = store.compare(allow_failed=True)
    assert (decision.failed_candidate, decision.n_pairs) == ((3,), 7)
    assert store.comparison_run().data.tags["trueup.failed_seeds"] == "3"


def test_finished_rerun_replaces_a_failed_run(store):
    store.log("deep", {3: None}, status="FAILED")
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    assert store.compare() == compare(DEEP, BASE)


def test_order_that_turns_is_noted(store):
    store.log("deep", DEEP, metrics={"val_log_loss": 0.6})
    store.log("mlp", BASE, metrics={"val_log_loss": 0.5})
    store.compare()
    note = store.comparison_run().data.tags["mlflow.note.content"]
    assert "vanilla and calibrated metric disagree on the order" in note


def test_seed_may_be_a_tag_of_the_seeds_backend(store):
    for model, values in (("deep", DEEP), ("mlp", BASE)):
        for seed, value in values.items():
            tags = {"trueup.seed": str(seed), TAG: "f0", "model": model}
            run_id = store.client.create_run(store.experiment_id, tags=tags).info.run_id
            store.client.log_metric(run_id, METRIC, value)
            store.client.set_terminated(run_id)
    assert store.compare("tags.model = 'deep'", "tags.model = 'mlp'") == compare(DEEP, BASE)


def test_runs_without_seed_are_all_pairs_when_asked(store):
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    assert store.compare(seed_key=None).estimand == "all pairs"
    with pytest.raises(InvalidInputError, match="runs with the parameter or tag 'epoch'; got run"):
        store.compare(seed_key="epoch")


def test_fluent_client_is_the_default(store, tmp_path, monkeypatch):
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    monkeypatch.setattr(mlflow.tracking._tracking_service.utils, "_tracking_uri", None)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.client.tracking_uri)
    decision = compare_runs(
        "params.model = 'deep'",
        "params.model = 'mlp'",
        metric=METRIC,
        experiment_names=[store.name],
    )
    assert decision == compare(DEEP, BASE)


def test_two_finished_runs_of_a_seed_are_refused(store):
    store.log("deep", {**DEEP})
    store.log("deep", {3: 0.4})
    store.log("mlp", BASE)
    with pytest.raises(InvalidInputError, match="candidate must match one finished run per seed"):
        store.compare()


def test_message_on_two_runs_of_a_seed_names_them_and_a_filter_that_does(store):
    store.log("deep", {**DEEP})
    later = store.log("deep", {3: 0.4})
    store.log("mlp", BASE)
    with pytest.raises(InvalidInputError) as refusal:
        store.compare()
    name = store.client.get_run(later).info.run_name
    assert f"{later} ({name}) for seed 3" in str(refusal.value)
    assert 'add "and attributes.start_time >= ' in str(refusal.value)


def test_two_parents_of_seeds_are_told_apart_by_a_filter_in_the_message(store):
    for _ in range(2):
        parent = store.parent("deep")
        store.log("deep", {0: 0.4, 1: 0.5}, parent=parent)
    store.log("mlp", BASE)
    with pytest.raises(InvalidInputError, match=r"and tags\.mlflow\.parentRunId = "):
        store.compare()


def test_parent_without_seeds_says_how_to_ask_for_its_children(store):
    parent = store.parent("deep")
    tags = {"mlflow.parentRunId": parent}
    store.client.create_run(store.experiment_id, tags=tags)
    store.log("mlp", BASE)
    with pytest.raises(InvalidInputError, match="It is the parent of 1 runs: ask for them with"):
        store.compare()


@pytest.mark.parametrize(
    ("options", "name", "start"),
    [
        ({}, "deep beats mlp", "deep beats mlp"),
        (
            {"candidate_name": "DeepFM", "baseline_name": "MLP"},
            "DeepFM beats MLP",
            "DeepFM beats MLP",
        ),
    ],
)
def test_comparison_is_named_by_winner_and_loser(store, options, name, start):
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    store.compare(**options)
    run = store.comparison_run()
    assert run.info.run_name == name
    assert run.data.tags["mlflow.note.content"].startswith(start)
    kind = store.client.get_experiment(store.experiment_id).tags["mlflow.experimentKind"]
    assert kind == "custom_model_development"


def test_seeds_with_rows_of_their_own_are_said_in_the_description(store):
    own = {seed: f"f{seed}" for seed in DEEP}
    store.log("deep", DEEP, fingerprint=own)
    store.log("mlp", BASE, fingerprint=own)
    store.compare()
    note = store.comparison_run().data.tags["mlflow.note.content"]
    assert "The seeds of the candidate were scored on different rows" in note
    assert "a split drawn from the seed" in note


def test_bad_requests_are_refused_by_name(store):
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    with pytest.raises(InvalidInputError, match="baseline must match at least one run; got none"):
        store.compare(baseline="params.model = 'cnn'")
    with pytest.raises(InvalidInputError, match="must match different runs; got run"):
        store.compare(baseline="params.model = 'deep'")
    with pytest.raises(InvalidInputError, match=r"got 'auc'. They have \['calib"):
        store.compare(metric="auc")
    with pytest.raises(InvalidInputError, match="name existing experiments; got 'nowhere'"):
        store.compare(experiment_names=["nowhere"])


def test_runs_in_which_nothing_was_trained_are_left_out_and_said(store):
    store.log("deep", DEEP)
    store.log("mlp", BASE)
    for role in ("scoring", "resampling"):
        run_id = store.log("deep", {0: 99.0})
        store.client.set_tag(run_id, "trueup.role", role)
    with pytest.warns(TrueupWarning, match="candidate leaves out 2 runs in which nothing was tra"):
        assert store.compare() == compare(DEEP, BASE)


def test_a_training_that_also_holds_a_resampling_is_still_one(store):
    store.log("mlp", BASE)
    X = np.random.default_rng(0).normal(size=(60, 1))
    estimate = generalization_error(
        LogisticRegression(), X, X[:, 0] > 0, KFold(3), calibrated=False
    )
    run_id = store.log("deep", DEEP)
    log_resampling(estimate, run_id=run_id, prefix="cv_", client=store.client)
    assert store.compare() == compare(DEEP, BASE)
    assert store.compare(seed_key=None).n_pairs == store.compare().n_pairs


def test_a_filter_of_scores_alone_is_refused_with_what_it_met(store):
    store.log("mlp", BASE)
    store.client.set_tag(store.log("deep", {0: 0.4}), "trueup.role", "scoring")
    with pytest.raises(InvalidInputError, match=r"and 1 run in which nothing .* a run of scoring"):
        store.compare()


def test_a_run_that_a_filter_names_by_its_id_is_called_by_its_name(store):
    ids = []
    for name, values in (("deep", DEEP), ("mlp", BASE)):
        ids.append(store.parent(name))
        store.client.set_tag(ids[-1], "mlflow.runName", f"the {name}")
        store.log(name, values, parent=ids[-1])
    store.compare(f"run_id = '{ids[0]}'", f"tags.mlflow.parentRunId = '{ids[1]}'")
    assert store.comparison_run().info.run_name == "the deep beats the mlp"


def test_a_score_is_compared_only_where_its_direction_is_said(store):
    for model, values in (("deep", DEEP), ("mlp", BASE)):
        for seed, value in values.items():
            store.log(model, {seed: value}, metrics={"val_auc": 1.0 - value})
    with pytest.raises(InvalidInputError, match="got 'val_auc', whose name says that higher is"):
        store.compare(metric="val_auc")
    assert store.comparisons() == []
    with pytest.warns(TrueupWarning, match="no fingerprint"):
        higher = store.compare(metric="val_auc", greater_is_better=True)
    assert (higher.verdict, higher.greater_is_better) == ("candidate", True)
    assert "(higher is better)" in str(higher)
    with pytest.warns(TrueupWarning, match="no fingerprint"):
        assert store.compare(metric="val_auc", greater_is_better=False).verdict == "baseline"


@pytest.mark.parametrize(
    ("value", "status", "said"),
    [
        (float("nan"), "FINISHED", "at seed 2, in which it is nan"),
        (None, "FINISHED", "at seed 2, which has none"),
        (0.4, "FAILED", r"\(FAILED\) at seed 2\. Rerun"),
    ],
)
def test_a_refused_seed_is_said_to_have_failed_or_to_lack_the_metric(store, value, status, said):
    store.log("deep", {seed: DEEP[seed] for seed in DEEP if seed != 2})
    store.log("deep", {2: value}, status=status)
    store.log("mlp", BASE)
    with pytest.raises(InvalidInputError, match=said):
        store.compare()
