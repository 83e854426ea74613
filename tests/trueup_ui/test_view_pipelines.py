from __future__ import annotations

import pytest

from trueup_mlflow.compare.stored_run import StoredRun
from trueup_ui.view.compare import Asked, as_markdown, compare_page
from trueup_ui.view.experiment import Choice, experiment_page
from trueup_ui.view.pipelines import choices, group
from trueup_ui.view.seeds import metric_keys, summarise


def run(run_id, metrics=None, *, parent=None, seed=None, status="FINISHED", params=None, **tags):
    tags = {name.replace("__", "."): value for name, value in tags.items()}
    if parent:
        tags["mlflow.parentRunId"] = parent
    if seed is not None:
        tags["trueup.seed"] = str(seed)
    return StoredRun(run_id, "1", run_id, status, 1, 2, params or {}, tags, metrics or {})


def seeds(parent, values, calibrated=None, **tags):
    children = [
        run(
            f"{parent}{seed}",
            {"loss": value, **({"calibrated_loss": calibrated[seed]} if calibrated else {})},
            parent=parent,
            seed=seed,
            **tags,
        )
        for seed, value in enumerate(values)
    ]
    return [run(parent), *children]


def test_parents_of_seeds_are_pipelines_and_other_runs_are_counted():
    found = group([*seeds("a", [1.0, 2.0]), run("alone", {"loss": 3.0})])
    assert [(one.key, len(one.runs)) for one in found.pipelines] == [("a", 2)]
    assert found.n_left_out == 1


def test_without_parents_equal_parameters_but_the_seed_make_a_pipeline():
    runs = [
        run(f"{rate}{seed}", {"loss": 1.0}, params={"rate": rate, "seed": seed, "same": "x"})
        for rate in "12"
        for seed in "012"
    ]
    found = group(runs)
    assert found.by == "params"
    assert [(one.name, len(one.runs)) for one in found.pipelines] == [
        ("rate = 1", 3),
        ("rate = 2", 3),
    ]
    assert choices(runs) == ["parents", "params", "param:rate", "param:same"]


def test_runs_are_grouped_by_a_tag_and_those_without_are_counted():
    runs = [run("a", {"loss": 1.0}, team="x"), run("b", {"loss": 1.0})]
    found = group(runs, "tag:team")
    assert [one.name for one in found.pipelines] == ["x"]
    assert found.n_left_out == 1


def test_studies_comparisons_and_monitors_are_no_pipelines():
    roles = ["study", "comparison", "resampling", "check_train", "monitor", "scoring"]
    runs = [run(role, {"loss": 1.0}, trueup__role=role) for role in roles]
    runs.append(run("a test set of a resampling", {"loss": 1.0}, trueup__fold="0"))
    assert group(runs).pipelines == ()
    assert choices(runs) == ["parents", "params"]


def test_runs_that_score_files_are_counted_beside_the_trainings():
    runs = [*seeds("a", [1.0, 2.0]), run("s", {"loss": 3.0}, trueup__role="scoring")]
    page = experiment_page(runs, Choice())
    assert (page.n_runs, page.n_scoring, page.n_left_out) == (2, 1, 0)


def test_failed_runs_have_no_part_in_the_mean():
    runs = seeds("a", [1.0, 3.0])
    runs.append(run("f", {"loss": 100.0}, parent="a", seed=2, status="FAILED"))
    found = summarise(group(runs).pipelines[0], "loss")
    assert (found.vanilla.mean, found.n_seeds, found.n_failed) == (2.0, 2, 1)


@pytest.mark.parametrize(
    ("values", "tags", "words"),
    [
        ([1.0] * 5, {}, "unused seed"),
        ([1.0, 2.0], {}, "few seeds: 2"),
    ],
)
def test_what_is_odd_is_said(values, tags, words):
    found = summarise(group(seeds("a", values, **tags)).pipelines[0], "loss")
    assert any(words in text for text in found.warnings)


def test_a_calibrated_metric_that_varies_more_is_said():
    vanilla = [0.5 + 0.001 * (k % 3) for k in range(12)]
    calibrated = [0.5 + 0.01 * (k % 4) for k in range(12)]
    noisy = summarise(group(seeds("a", vanilla, calibrated)).pipelines[0], "loss")
    assert any(text.startswith("few rows") for text in noisy.warnings)
    calm = summarise(group(seeds("a", calibrated, vanilla)).pipelines[0], "loss")
    assert not any(text.startswith("few rows") for text in calm.warnings)


def test_seeds_on_different_rows_are_named():
    runs = seeds("a", [1.0, 2.0, 3.0])
    for one, rows in zip(runs[1:], "xxy", strict=True):
        one.tags["trueup.fingerprint.loss"] = rows
    found = summarise(group(runs).pipelines[0], "loss")
    assert "different rows: 2 sets of validation rows among the seeds" in found.warnings


def test_a_seed_trained_twice_is_named():
    runs = [*seeds("a", [1.0, 2.0]), run("again", {"loss": 3.0}, parent="a", seed=1)]
    found = summarise(group(runs).pipelines[0], "loss")
    assert "seed 1 trained more than once" in found.warnings


def test_metrics_with_a_calibrated_twin_come_first():
    runs = [run("a", {"auc": 1.0, "loss": 1.0, "calibrated_loss": 1.0, "loss_std": 0.1})]
    assert metric_keys(runs) == ["loss", "auc"]


def test_a_pipeline_whose_rank_the_calibration_changes_is_marked():
    runs = [
        *seeds("a", [1.0, 1.2, 1.1], [0.95, 0.97, 0.96]),
        *seeds("b", [1.3, 1.5, 1.4], [0.7, 0.71, 0.72]),
        *seeds("c", [2.0, 2.1, 2.2], [2.0, 2.1, 2.2]),
    ]
    page = experiment_page(runs, Choice())
    assert [(row.seeds.pipeline.name, row.moved) for row in page.rows] == [
        ("b", 1),
        ("a", -1),
        ("c", 0),
    ]
    assert page.n_moved == 2
    by_vanilla = experiment_page(runs, Choice(order="vanilla"))
    assert [row.seeds.pipeline.name for row in by_vanilla.rows] == ["a", "b", "c"]
    upside_down = experiment_page(runs, Choice(higher=True))
    assert [row.rank for row in upside_down.rows] == [1, 2, 3]
    assert upside_down.rows[0].seeds.pipeline.name == "c"


def test_an_infinite_value_is_no_value():
    page = experiment_page(seeds("a", [1.0, float("inf"), float("nan"), 2.0]), Choice())
    assert page.rows[0].seeds.n_seeds == 2


def test_ranks_are_among_pipelines_whose_means_are_of_the_same_runs():
    runs = [
        *seeds("a", [1.0, 1.2, 1.1], [0.95, 0.97, 0.96]),
        *seeds("none", [0.1, 0.2, 0.3]),
        *seeds("part", [0.4, 0.5, 0.6], [0.4, 0.5, 0.6]),
        *seeds("b", [2.0, 2.1, 2.2], [2.0, 2.1, 2.2]),
    ]
    for one in runs:
        if one.run_id in ("part0", "part1"):
            del one.metrics["calibrated_loss"]
    page = experiment_page(runs, Choice())
    ranks = {row.seeds.pipeline.name: (row.rank, row.vanilla_rank) for row in page.rows}
    assert ranks == {"a": (1, 1), "b": (2, 2), "none": (None, None), "part": (None, None)}
    assert (page.n_moved, page.n_ranked) == (0, 2)
    part = next(row.seeds for row in page.rows if row.seeds.pipeline.name == "part")
    assert part.of_runs == "1 of 3 runs"
    assert any(
        text.startswith("different runs: the vanilla mean is of 3") for text in part.warnings
    )


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({"trueup__skipped__loss": "one class"}, "no calibrated value in 2 runs: one class"),
        (
            {"trueup__coverage": "twins of x; none of y, loss: it is rounded. For a loss among"},
            "no calibrated value in 2 runs: it is rounded",
        ),
        ({}, "no calibrated value in 2 runs: nothing in them says why; trueup doctor RUN_ID looks"),
    ],
)
def test_what_the_runs_say_of_a_missing_calibrated_value_is_shown(tags, reason):
    runs = [*seeds("a", [1.0, 2.0], **tags), *seeds("b", [1.0, 2.0], [1.0, 2.0])]
    page = experiment_page(runs, Choice(metric="loss"))
    told = {row.seeds.pipeline.name: row.seeds.warnings for row in page.rows}
    assert any(text.startswith(reason) for text in told["a"])
    assert not any("no calibrated" in text for text in told["b"])


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ((0, 1, 2), "3 seeds"),
        ((4,), "1 seed"),
        ((7, 7, 7), "3 runs of 1 seed"),
        ((0, 1, 1), "3 runs of 2 seeds"),
        ((None, None), "2 runs"),
    ],
)
def test_runs_of_one_seed_are_not_called_seeds(given, count):
    runs = [run(f"r{k}", {"loss": 1.0 + k}, seed=seed) for k, seed in enumerate(given)]
    assert summarise(group(runs).pipelines[0], "loss").count == count


def test_runs_that_train_nothing_are_not_counted_as_trainings():
    own = [run(role, {"loss": 1.0}, trueup__role=role) for role in ("comparison", "resampling")]
    page = experiment_page([*seeds("a", [1.0, 2.0]), *own], Choice())
    assert (page.n_runs, page.n_stored) == (2, 5)


def scored(name: str) -> list[StoredRun]:
    """Return two pipelines, the second of which has the higher values."""
    return [
        one
        for parent, start in (("a", 0.8), ("b", 0.9))
        for one in (
            run(parent),
            *(
                run(f"{parent}{k}", {name: start + 0.001 * k}, parent=parent, seed=k)
                for k in range(8)
            ),
        )
    ]


@pytest.mark.parametrize("name", ["val_accuracy", "r2"])
def test_a_score_is_neither_ranked_nor_compared_until_its_direction_is_said(name):
    runs = scored(name)
    page, compared = experiment_page(runs, Choice()), compare_page(runs, Asked())
    assert [(row.rank, row.vanilla_rank) for row in page.rows] == [(None, None)] * 2
    assert f"the name of {name} says that higher is better" in page.undirected
    assert compared.undirected == page.undirected
    assert compared.matrix[0][1].outcome == "refused"
    assert page.undirected in as_markdown(compared, "here").replace("\\", "")
    ranked = experiment_page(runs, Choice(higher=True))
    assert ranked.undirected == ""
    assert [row.vanilla_rank for row in ranked.rows] == [1, 2]
    assert ranked.rows[0].seeds.pipeline.name == "b"
    assert compare_page(runs, Asked(higher=True)).matrix[0][1].outcome == "wins"
    lower = compare_page(runs, Asked(higher=False))
    assert lower.shown[0].pipeline.name == "a"
    assert lower.matrix[0][1].outcome == "wins"


def test_a_loss_is_ranked_and_the_table_says_that_lower_is_better():
    runs = scored("val_loss")
    assert experiment_page(runs, Choice()).rows[0].vanilla_rank == 1
    assert "over seeds, lower is better" in as_markdown(compare_page(runs, Asked()), "here")
