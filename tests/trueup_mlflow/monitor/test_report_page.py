"""The report shows what a store holds as text, whatever it is."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.report_page import draw_series, render_report
from trueup_mlflow.write.monitor_items import BatchRecord
from trueup_mlflow.write.segment_items import segments_of

MARKUP = "<script>alert('x')</script>&amp;\"'{{ 7*7 }}"


def record(**changes):
    estimate = {"mse": 0.2, "low": 0.1, "high": 0.3, "trusted": False, "reasons": ["far"]}
    values = {
        "digest": "d",
        "step": 0,
        "timestamp": 1_700_000_000_000,
        "n": 10,
        "estimate": estimate | changes.pop("estimate", {}),
        "moved": [["a", 1.25]],
    }
    return BatchRecord.from_json(values | changes)


class Words(HTMLParser):
    """Tags, and the text between them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize(
    "stored",
    [
        record(n=MARKUP),
        record(realized=MARKUP),
        record(moved=[[MARKUP, 1.0], ["a", MARKUP]]),
        record(estimate={"reasons": [MARKUP]}),
        record(estimate={"mse": MARKUP, "low": MARKUP, "high": MARKUP}),
    ],
    ids=["n", "realized", "moved", "reasons", "estimate"],
)
def test_markup_in_a_stored_value_is_text(stored):
    page = Words(render_report("models:/m/1", [stored], draw_series([stored])))
    assert "script" not in page.tags
    assert MARKUP in page.text


def test_markup_in_the_name_of_a_model_is_text():
    page = Words(render_report(MARKUP, [record()], ""))
    assert "script" not in page.tags
    assert page.text.count(MARKUP) == 2
    assert "a +1.2 sd" in page.text
    assert "not to be trusted: far" in page.text


@pytest.mark.parametrize(
    "change",
    [{"timestamp": "now"}, {"timestamp": 1e300}, {"moved": 3}, {"estimate": None}, {"x": 1}],
)
def test_what_is_no_record_is_named(change):
    values = record().to_json() | change
    with pytest.raises(InvalidInputError, match="must be a record of trueup"):
        BatchRecord.from_json(values)


def series(values, **changes):
    """One batch a day from 2023-11-15 00:00 on, with an interval of a factor of 2 both ways."""
    return [
        record(
            timestamp=1_700_006_400_000 + 86_400_000 * k,
            n=1_000,
            estimate={"mse": mse, "low": mse / 2, "high": mse * 2, "trusted": True, "reasons": []},
            **changes,
        )
        for k, mse in enumerate(values)
    ]


def legend(figure):
    """The words of the figure: matplotlib writes each text as a comment beside its shapes."""
    return set(re.findall(r"<!-- (.*?) -->", figure))


def test_the_axis_is_logarithmic_where_the_range_asks_for_it():
    assert not any("^{" in word for word in legend(draw_series(series([1.0, 2.0]))))
    assert any("10^{" in word for word in legend(draw_series(series([1.0, 1e4]))))
    near = draw_series(series([1.0, 2.0]), thresholds=[1e3])  # a far line would flatten the series
    assert any("10^{" in word for word in legend(near))
    assert "threshold 1,000" in legend(near)


def test_batches_of_few_rows_are_told_apart_in_figure_and_table():
    batches = series([1.0] * 5)
    assert "few" not in render_report("models:/m/1", batches, draw_series(batches))
    batches[2] = replace(batches[2], n=100)
    assert "estimated, fewer than 250 rows" in legend(draw_series(batches))
    assert Words(render_report("models:/m/1", batches, "")).text.count("100 (few)") == 1
    small = [replace(one, n=9) for one in batches]  # all of them, so that none is unusual
    assert "estimated, fewer than 30 rows" in legend(draw_series(small))


def test_what_was_realized_outside_of_its_interval_is_marked_in_figure_and_table():
    batches = series([1.0] * 3, realized=1.5)
    assert legend(draw_series(batches)) & {"realized", "realized, outside of its interval"} == {
        "realized"
    }
    batches[1] = replace(batches[1], realized=2.5, corrections=(1.0,))
    assert "realized, outside of its interval" in legend(draw_series(batches))
    page = render_report("models:/m/1", batches, "")
    assert page.count('class="bad"') == 1
    assert "2.5 (above)" in Words(page).text
    assert "(corrected)" in Words(page).text
    assert "realized" not in legend(draw_series(series([1.0])))


def test_times_are_days_unless_batches_have_hours():
    batches = series([1.0, 1e4])
    page = Words(render_report("models:/m/1", batches, "")).text
    assert "2023-11-15" in page
    assert "00:00" not in page.split("interval")[1]
    assert "10,000" in page
    hours = replace(batches[1], timestamp=batches[1].timestamp + 3_600_000)
    assert "2023-11-16 01:00" in Words(render_report("models:/m/1", [hours], "")).text


def test_one_batch_and_batches_without_an_estimate_are_drawn():
    assert "<svg" in draw_series(series([1.0]))
    nothing = record(estimate={"mse": None, "low": None, "high": None})
    assert "<svg" in draw_series([nothing])
    assert "none to none" in Words(render_report("models:/m/1", [nothing], "")).text


def point(key, value, step):
    return SimpleNamespace(key=f"segment/region/{key}", value=value, step=step)


def test_levels_are_shown_with_their_rows_their_batch_and_what_is_few():
    def level(name, step, rows, trusted):
        key = f"{name}/estimated_mse"
        values = {"": 0.5, "_low": 0.25, "_high": 1.0, "_rows": rows, "_trusted": trusted}
        return [point(f"{key}{part}", value, step) for part, value in values.items()]

    points = [
        *level("north", 2, 400.0, 1.0),
        *level(MARKUP, 1, 40.0, 0.0),
        point("north/realized_mse", 0.75, 1),
        point("old/estimated_mse", 0.5, 0),
        point("old/estimated_mse_low", 0.25, 1),  # of another batch
    ]
    found = {one.name.removeprefix("region/"): one for one in segments_of(points, "mse")}
    assert list(found) == [MARKUP, "north", "old"]
    assert (found["north"].rows, found["north"].few, found["north"].trusted) == (400, False, True)
    assert (found["old"].rows, found["old"].low, found["old"].few) == (None, None, False)
    assert segments_of(points, "mae") == ()

    batches = [replace(one, step=step) for step, one in enumerate(series([1.0] * 3))]
    page = render_report("models:/m/1", batches, "", segments=tuple(found.values()))
    words = " ".join(Words(re.sub("(</?(td|div))", r" \1", page)).text.split())
    assert "script" not in Words(page).tags
    assert "region/north 2023-11-17 400 0.5 0.25 to 1 0.75 of 2023-11-16" in words
    assert f"region/{MARKUP} 2023-11-16 40 (few) 0.5 0.25 to 1 not to be trusted" in words
    assert "levels of fewer than 30 rows have none" in words
    assert "Levels of columns" not in render_report("models:/m/1", batches, "")
