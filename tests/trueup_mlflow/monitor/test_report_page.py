"""The report shows what a store holds as text, whatever it is."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.page.report_page import draw_series, render_report
from trueup_mlflow.write.monitor_items import BatchRecord

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
