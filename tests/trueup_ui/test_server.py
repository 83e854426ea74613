"""What the server answers, without a browser."""

from __future__ import annotations

import hashlib
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.trueup_ui.stores import HOSTILE

from trueup_cli.pages import report
from trueup_ui.read.store import RunCache
from trueup_ui.view.charts import curves


def ask(url: str, **headers: str):
    """Return status, headers and text, of failures too."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as failure:
        with failure:
            return failure.code, failure.headers, failure.read().decode()


def pages(filled) -> list[str]:
    own = f"/experiment/{filled.experiment}"
    return ["/", own, f"{own}/compare", f"{own}/studies", f"{own}/fields", "/models", "/nothing"]


def test_every_answer_forbids_inline_scripts_and_other_hosts(served, filled):
    for path in [*pages(filled), "/static/page.js"]:
        _, headers, _ = ask(served + path)
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_a_name_of_the_web_that_points_here_is_refused(served):
    assert ask(f"{served}/models", Host="evil.example")[0] == 400


@pytest.mark.parametrize(
    "path",
    [
        "/experiment/404404",
        "/experiment/1/pipeline?key=x",
        "/model?name=x&version=1",
        "/study?name=x",
    ],
)
def test_what_is_not_there_is_said(served, path):
    status, _, text = ask(served + path)
    assert status == 404
    assert "Back to the first page" in text


def test_a_hostile_query_is_text(served, filled):
    name = urllib.request.quote(HOSTILE[0])
    own = f"/experiment/{filled.experiment}"
    for path in (
        f"{own}?metric={name}&by={name}&order={name}",
        f"{own}/compare?metric={name}&p={name}&a={name}&b={name}",
        f"{own}/fields?search={name}&field={name}&page={name}&table=../../{name}",
        f"/experiment/{name}",
        f"/model?name={name}&version={name}",
    ):
        status, _, text = ask(served + path)
        assert status in (200, 404, 400), path
        assert HOSTILE[0] not in text, path


def test_pages_write_nothing(served, filled):
    database = Path(filled.uri.removeprefix("sqlite:///"))
    studies = Path(filled.studies.removeprefix("sqlite:///"))
    before = [hashlib.sha256(path.read_bytes()).digest() for path in (database, studies)]
    for path in pages(filled):
        ask(served + path)
    study = urllib.request.quote(HOSTILE[0])
    assert ask(f"{served}/study?name={study}")[0] == 200
    assert [hashlib.sha256(path.read_bytes()).digest() for path in (database, studies)] == before


def test_a_comparison_can_be_copied_as_markdown(served, filled):
    _, _, copied = ask(f"{served}/experiment/{filled.experiment}/compare.md")
    assert "| pipeline | mean ± sd | seeds |" in copied
    assert r"a \| plain \`name\`" in copied
    assert "Different validation rows" in copied


def test_the_report_is_one_file_that_loads_nothing(filled, tmp_path):
    file = tmp_path / "page.html"
    ran = CliRunner().invoke(
        report, [HOSTILE[4], "--output", str(file), "--tracking-uri", filled.uri]
    )
    assert ran.exit_code == 0, ran.output
    text = file.read_text()
    assert not re.findall(r"<(?:script|link|img|iframe)\b|url\(", text)
    assert "default-src &#39;none&#39;" in text
    for heading in ("Pipelines by", "Comparison on", "Logged decisions", "Study"):
        assert heading in text
    assert not [name for name in HOSTILE[:2] + HOSTILE[4:5] if name in text]


def test_a_report_of_nothing_is_refused(filled, tmp_path):
    ran = CliRunner().invoke(
        report, ["no such", "--output", str(tmp_path / "x"), "--tracking-uri", filled.uri]
    )
    assert ran.exit_code != 0
    assert "SUBJECT must exist" in ran.output


def test_the_cache_sees_new_and_finished_runs_without_reading_old_ones(filled):
    experiment = filled.client.create_experiment("cache")
    cache = RunCache(filled.client, experiment)
    assert cache.snapshot().runs == ()
    run = filled.client.create_run(experiment, run_name="one").info.run_id
    begun = cache.snapshot()
    assert [one.status for one in begun.runs] == ["RUNNING"]
    assert cache.snapshot() is begun
    filled.client.log_metric(run, "loss", 1.0)
    assert cache.snapshot().runs[0].metrics == {"loss": 1.0}
    filled.client.set_terminated(run)
    ended = cache.snapshot()
    assert ended.runs[0].status == "FINISHED"
    assert ended.version != begun.version
    filled.client.delete_run(run)
    assert cache.snapshot(anew=True).runs == ()


def test_the_cache_sees_a_run_that_ended_by_a_clock_far_behind(filled):
    experiment = filled.client.create_experiment("clocks")
    early, late = (filled.client.create_run(experiment).info.run_id for _ in range(2))
    filled.client.set_terminated(late, end_time=4_000_000_000_000)
    cache = RunCache(filled.client, experiment)
    assert {one.status for one in cache.snapshot().runs} == {"RUNNING", "FINISHED"}
    filled.client.set_terminated(early)
    assert {one.status for one in cache.snapshot().runs} == {"FINISHED"}


def test_curves_are_means_over_the_seeds_that_have_the_step():
    found = curves({"a": {0: 1.0, 1: 3.0}, "b": {0: 3.0}, "c": {2: float("nan")}})
    assert found.steps == (0, 1)
    assert found.mean == (2.0, 3.0)
    assert found.low == (pytest.approx(2.0 - 2**0.5), None)
    assert dict(found.traces) == {"a": (1.0, 3.0), "b": (3.0, None)}


def test_a_monitored_version_has_a_report(filled, tmp_path):
    file = tmp_path / "model.html"
    arguments = ["models:/demand/1", "--output", str(file), "--tracking-uri", filled.uri]
    assert CliRunner().invoke(report, arguments).exit_code == 0
    text = file.read_text()
    assert "2 of 2 realized batches" in text
    assert HOSTILE[1] not in text
    refused = CliRunner().invoke(report, ["models:/demand/7", *arguments[1:]])
    assert "SUBJECT must be a monitored version" in refused.output
