"""The command of the click tables, its data and its files, at a small size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

SMALL = ["--rows", "1024", "3000", "--seeds", "3", "--tables", "3"]


@pytest.fixture
def run(click, tmp_path):
    def run(*arguments):
        out = tmp_path / "table.md"
        where = ["--cache", str(tmp_path / "cache"), "--out", str(out)]
        click.script.main([*arguments, *where])
        return out.read_text(), pd.read_parquet(out.with_suffix(".parquet"))

    return run


def avazu_file(folder, n):
    rng = np.random.default_rng(0)
    table = {"id": [f"{10**19 + i}" for i in range(n)], "click": rng.integers(0, 2, n)}
    table["hour"] = np.sort(14102100 + rng.integers(0, 24, n))
    table["C1"], table["banner_pos"] = 1005, rng.integers(0, 2, n)
    for name in ("site_id", "site_domain", "site_category", "app_id", "app_domain"):
        table[name] = rng.choice(["1fbe01fe", "85f751fd", "f3845767"], n)
    for name in ("app_category", "device_id", "device_ip", "device_model"):
        table[name] = rng.choice(["07d7df22", "a99f214a"], n)
    table["device_type"] = table["device_conn_type"] = rng.integers(0, 3, n)
    for i in range(14, 22):
        table[f"C{i}"] = rng.integers(-1, 400, n)
    pd.DataFrame(table).to_csv(folder / "train.csv", index=False)
    return folder / "train.csv"


def criteo_file(folder, n):
    rng = np.random.default_rng(0)
    lines = []
    for label in rng.integers(0, 2, n):
        numbers = [str(value) if value > -3 else "" for value in rng.integers(-4, 90, 13)]
        texts = rng.choice(["68fd1e64", "80e26c9b", ""], 26)
        lines.append("\t".join([str(label), *numbers, *texts]))
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    return folder / "train.txt"


def test_the_smallest_table_is_written_with_its_seeds(run):
    text, seeds = run("--data", "synthetic:5", *SMALL)
    assert "## Table 3: model architectures" in text
    assert "| constant | DCN" in text
    assert "64.4 / 71.5" in text
    assert len(seeds) == 4 * 2 * 3
    assert (seeds["vanilla"] > 0.3).all()
    assert (seeds.groupby("rate")["vanilla"].nunique() == 12).all()


def test_more_seeds_go_on_from_the_files(click, run, tmp_path):
    first = run("--data", "synthetic:5", "--rows", "1024", "3000", "--seeds", "5", "--tables", "3")
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npz")}
    assert len(files) == 4 * 2
    more = run("--data", "synthetic:5", "--rows", "1024", "3000", "--seeds", "8", "--tables", "3")
    assert all(path.stat().st_mtime_ns == time for path, time in files.items())
    assert len(list((tmp_path / "cache").rglob("*.npz"))) == 2 * 4 * 2
    old = more[1][more[1]["seed"] < 5].reset_index(drop=True)
    pd.testing.assert_frame_equal(old, first[1])


def test_another_pipeline_or_data_set_is_another_file(click):
    data = click.data.synthetic(5, 64, 64)
    base = click.training.Pipeline("p", click.networks.Design("FNN"))

    def name(pipeline, data=data, schedule="constant"):
        return click.training._file_name(pipeline, data, range(5), schedule)

    known = click.pipelines.pipelines(click.pipelines.STAND_IN)
    distinct = {name(pipeline) for pipeline in known.values()}
    # L2 7e-7 and 7e-2, 1e-6 and 1e-1, 2e-6 and 2e-1 have the same weight on a stand-in.
    assert len(distinct) == len(known) - 3
    assert name(base) != name(base, click.data.synthetic(6, 64, 64))
    assert name(base) != name(base, schedule="decay")


def test_scores_are_those_of_trueup(click):
    from trueup import CrossFit, HoldOut, evaluate

    data = click.data.synthetic(5, 1024, 3000)
    pipeline = click.pipelines.pipelines(click.pipelines.STAND_IN)["FNN"]
    scores = click.training.train_and_score(pipeline, data, [3], "constant")
    logit = click.training.train(pipeline, data, [3], "constant")[0]
    y, row_id = data.y[1024:], data.row_id[1024:]
    folds = evaluate(y, y_logit=logit, split=CrossFit(), row_id=row_id)
    remain = evaluate(y, y_logit=logit, split=HoldOut(0.1), row_id=row_id)
    assert scores.vanilla[0] == pytest.approx(np.mean(np.logaddexp(0, logit) - y * logit))
    assert scores.crossfit[0] == folds.calibrated
    assert scores.holdout[0] == remain.calibrated
    assert scores.vanilla_on_holdout[0] == remain.vanilla_on_scored_rows


def test_flights_are_the_shipped_ones(click):
    data = click.data.flights(3000, 1000)
    assert data.codes.shape == (4000, 8)
    assert data.numbers.shape == (4000, 3)
    assert len(set(data.row_id)) == 4000
    assert np.allclose(data.numbers[:3000].mean(axis=0), 0.0, atol=1e-5)
    assert data.digest() == click.data.flights(3000, 1000).digest()


def test_synthetic_clicks_have_the_stated_rate(click):
    data = click.data.synthetic(1, 40_000, 10_000)
    standard_error = (0.17 * 0.83 / 50_000) ** 0.5
    assert abs(data.y.mean() - 0.17) < 4 * standard_error


def test_levels_not_seen_or_rare_in_training_are_zero(click):
    column = np.array(["a", "b", "a", "c", "b", "d", "a"])
    assert click.data._encode(column, 5, 1).tolist() == [1, 2, 1, 3, 2, 0, 1]
    assert click.data._encode(column, 5, 2).tolist() == [1, 2, 1, 0, 2, 0, 1]


def test_avazu_is_split_as_in_the_paper(click, tmp_path):
    data = click.data.avazu(avazu_file(tmp_path, 100))
    assert data.n_train == 80
    assert data.bias_fraction == pytest.approx(2 / 20)
    assert data.codes.shape == (100, 16)
    assert data.numbers.shape == (100, 6)
    assert sorted(data.row_id) == list(range(100))


def test_criteo_is_split_as_in_the_paper(click, tmp_path):
    data = click.data.criteo(criteo_file(tmp_path, 100))
    assert data.n_train == 85
    assert data.bias_fraction == pytest.approx(3 / 15)
    assert data.codes.shape == (100, 26)
    assert data.numbers.shape == (100, 13)
    assert np.isfinite(data.numbers).all()


def test_the_official_files_give_the_papers_own_tables(click, run, tmp_path):
    path = avazu_file(tmp_path, 4000)
    arguments = ["--data", "avazu", "--path", str(path), "--schedules", "constant"]
    text, seeds = run(*arguments, "--seeds", "3", "--tables", "3")
    assert "3,200 rows of training, 800 of validation" in " ".join(text.split())
    assert set(seeds["pipeline"]) == {"DCN", "DCNMix", "DeepFM", "FNN"}
    assert click.script.default_seeds("avazu", "decay") == 60
    assert click.script.default_seeds("criteo", "constant") == 60
    assert [t.key for t in click.script.chosen_tables("avazu", None)] == ["1", "3", "5", "6"]
    assert len(click.script.chosen_tables("criteo", None)) == 6


@pytest.mark.parametrize(("name", "write"), [("avazu", avazu_file), ("criteo", criteo_file)])
def test_rows_are_heard_for_official_files(click, tmp_path, name, write):
    path = write(tmp_path, 100)
    data = click.script.load(name, path, [60, 20])
    assert (data.n_train, len(data.y)) == (60, 80)
    assert sorted(data.row_id) == list(range(80))
    with pytest.raises(SystemExit, match="--rows must be at most 100 together"):
        click.script.load(name, path, [90, 20])


def test_a_file_that_is_shorter_than_the_papers_says_so(click, tmp_path, capsys):
    click.script.load("criteo", criteo_file(tmp_path, 100), None)
    assert (
        "criteo: 100 rows in the file, where the paper takes 15,000,000" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "keys", "reason"),
    [
        ("avazu", ["2"], "which holds the means of Table 1, on avazu"),
        ("criteo", ["1"], "got 1, which is of avazu"),
        ("flights", ["1", "13"], "which holds the means of Table 6"),
        ("flights", ["99"], "which is none of these"),
        ("sizes", ["1"], "--tables must be left out with sizes"),
    ],
)
def test_tables_that_cannot_be_had_are_named(click, name, keys, reason):
    with pytest.raises(SystemExit, match=reason):
        click.script.chosen_tables(name, keys)


def test_another_file_name_is_refused(click, tmp_path):
    with pytest.raises(SystemExit, match=r"--path must name the official train\.csv"):
        click.data.avazu(tmp_path / "avazu.csv")


def test_two_seeds_are_refused(click, capsys):
    with pytest.raises(SystemExit):
        click.script.parse(["--data", "flights", "--seeds", "2"])
    assert "--seeds must be at least 3" in capsys.readouterr().err


def test_the_gain_is_zero_where_calibration_changes_nothing(click):
    values = np.linspace(0.4, 0.5, 30)
    scores = click.training.Scores(*[values] * 5, cpu_seconds=values)
    other = click.training.Scores(*[values + 0.05] * 5, cpu_seconds=values)
    assert click.compare.gain_interval(scores, other) == (0.0, 0.0)
    found = click.compare.duel(click.tables.Pair("x", "y"), {"x": other, "y": scores})
    assert (found.a, found.b, found.reversed) == ("y", "x", True)
    assert found.paired_vanilla.value == 1.0


def test_fewer_training_rows_keep_the_validation_rows(click):
    data = click.data.synthetic(5, 300, 100)
    fewer = data.with_fewer(120)
    assert fewer.n_train == 120
    assert (fewer.row_id == data.row_id[180:]).all()
    assert (fewer.y[120:] == data.y[300:]).all()
    assert (fewer.codes == data.codes[180:]).all()


def test_figures_show_every_pipeline_and_pair(click):
    rng = np.random.default_rng(0)

    def scores():
        values = 0.4 + 0.01 * rng.random((6, 30))
        return click.training.Scores(*values)

    names = click.script.all_pipelines(click.tables.TABLES)
    results = {rate: {name: scores() for name in names} for rate in ("constant", "decay")}
    data = {"flights": results, "synthetic": results}
    shown = click.figures.reductions(data).axes[0].get_yticklabels()
    assert [label.get_text() for label in shown] == list(names)
    pairs = {(pair.a, pair.b) for table in click.tables.TABLES for pair in table.pairs}
    assert len(click.figures.accuracies(data).axes[0].get_yticklabels()) == len(pairs)
    assert len(click.figures.jitter(scores()).axes[0].lines) == 2
