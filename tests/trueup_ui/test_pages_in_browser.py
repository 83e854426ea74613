"""Every page on a real store in a real browser."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.trueup_ui.stores import HOSTILE, log_seeds

ALL = ("pipelines", "compare", "studies", "fields", "models", "model", "nothing")
pytestmark = pytest.mark.services


def paths(filled) -> dict[str, str]:
    own = f"/experiment/{filled.experiment}"
    return {
        "pipelines": own,
        "compare": f"{own}/compare",
        "studies": f"{own}/studies",
        "fields": f"{own}/fields",
        "models": "/models",
        "model": "/model?name=demand&version=1",
        "nothing": f"/experiment/{filled.empty}",
        "nothing to compare": f"/experiment/{filled.empty}/compare",
        "no study": f"/experiment/{filled.empty}/studies",
        "no field": f"/experiment/{filled.empty}/fields",
    }


def test_a_reader_clicks_through_all_pages(visit, filled):
    page = visit.go(f"/experiment/{filled.experiment}")
    rows = page.locator("table.pipelines tbody tr")
    assert rows.count() == 4
    assert page.locator(".strip").first.locator("circle").count() == 12
    visit.follow(page.get_by_role("link", name="a | plain `name`"))
    page.wait_for_selector(".chart canvas")
    page.get_by_label("each seed").check()
    assert page.locator("table.seeds tbody tr").count() == 6
    visit.follow(page.get_by_role("link", name="Compare"))
    assert page.locator(".matrix .wins").count() > 0
    assert page.locator(".matrix .refused").count() == 6
    page.locator(".matrix .inconclusive").first.get_by_text("more seed").wait_for()
    page.get_by_text("Copy as Markdown").click()
    markdown = page.locator("textarea")  # which a script fills
    expect(markdown).to_have_value(re.compile(r"\| pipeline \|"), timeout=300_000)
    visit.follow(page.locator(".matrix .loses a").first)
    assert page.locator("#pair .tie").count() == 6 + 2
    assert "beats" in page.locator("#pair .verdict").inner_text()
    assert page.locator(".decisions li").count() == 1
    visit.follow(page.get_by_role("link", name="Studies"))
    visit.follow(page.locator("table").last.locator("tbody a").first)
    assert page.locator(".race tr.selected").count() == 1
    assert "Confirmed on unseen seeds" in page.locator(".facts").inner_text()
    assert page.locator(".panels figure").count() == 2
    visit.follow(page.get_by_role("link", name="Fields"))
    assert page.locator(".levels tbody tr").count() == 100
    visit.follow(page.get_by_role("link", name="Next →"))
    assert page.locator(".pager").inner_text().startswith("101 to 200 of 306")
    visit.follow(page.get_by_role("link", name="Models"))
    visit.follow(page.get_by_role("link", name="demand"))
    assert page.locator(".batches tbody tr").count() == 3
    assert page.locator("path.realized").count() == 2 + 1


def test_a_choice_sends_itself_and_stays_in_the_address(visit, filled):
    page = visit.go(f"/experiment/{filled.experiment}")
    page.get_by_label("Order").select_option("name")
    page.wait_for_url(re.compile("order=name"))
    assert page.get_by_label("Order").input_value() == "name"
    page.get_by_label("Pipelines are").select_option("param:pipeline")
    page.wait_for_url(re.compile("by=param"))
    assert page.locator("table.pipelines tbody tr").count() == 4


@pytest.mark.parametrize("name", ["pipelines", "compare", "studies", "fields", "models", "model"])
def test_no_name_becomes_markup_or_script(visit, filled, name):
    page = visit.go(paths(filled)[name])
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script, [onmouseover], [onload], [onerror]").count() == 0
    links = page.eval_on_selector_all("a", "found => found.map(a => a.getAttribute('href'))")
    assert not [link for link in links if not link.startswith(("/", "#", "http://127.0.0.1"))]
    assert HOSTILE[4] in page.locator(".chooser option").all_inner_texts()
    assert "1337" not in page.locator("main").inner_text()


@pytest.mark.parametrize(("scheme", "names"), [("light", ALL), ("dark", ("pipelines", "compare"))])
def test_axe_finds_no_serious_fault(visit, filled, scheme, names):
    visit.page.emulate_media(color_scheme=scheme)
    found = {}
    for name, path in paths(filled).items():
        if name not in names:
            continue
        page = visit.go(path)
        # the tool is put into the page by the driver, past the policy that forbids scripts
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                found.setdefault(violation["id"], []).append((name, violation["nodes"][0]["html"]))
    assert found == {}


@pytest.mark.parametrize("window", [375, 861, 1024, 1200])
def test_nothing_is_wider_than_the_window(visit, filled, window):
    visit.page.set_viewport_size({"width": window, "height": 800})
    for name, path in paths(filled).items():
        width = visit.go(path).evaluate("document.documentElement.scrollWidth")
        assert width <= window, name


def test_the_keyboard_reaches_the_content_first(visit, filled):
    page = visit.go(f"/experiment/{filled.experiment}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_new_runs_appear_while_one_looks(visit, filled):
    other = filled.client.get_experiment_by_name("other").experiment_id
    log_seeds(filled.client, other, "first", 0.5, range(3))
    page = visit.go(f"/experiment/{other}")
    assert page.locator("table.pipelines tbody tr").count() == 1
    log_seeds(filled.client, other, "second", 0.6, range(3))
    page.locator("table.pipelines tbody tr").nth(1).wait_for()
    assert page.locator("#news").inner_text().startswith("Updated at")


@pytest.mark.parametrize("name", ["nothing", "nothing to compare", "no study", "no field"])
def test_an_empty_page_names_the_command_that_fills_it(visit, filled, name):
    page = visit.go(paths(filled)[name])
    assert re.search(
        "mlflow run|trueup tune|log_evaluation", page.locator(".empty pre").first.inner_text()
    )
