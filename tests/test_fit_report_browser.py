"""The report of a fit in a real browser, opened from the disk: what the map tells, by mouse and by keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from real_browser import chromium, needs_chromium, note_errors
from sklearn.datasets import load_iris

from pairmargin import MaxMarginClustering, read_items, sample_pairs, write_report

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("report")
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    table.insert(0, "name", [f"<b>flower {k}</b>" for k in range(150)])
    table.to_csv(folder / "flowers.csv", index=False)
    items = read_items(folder / "flowers.csv", id="name")
    pairs = sample_pairs(y, 40, random_state=0)
    model = MaxMarginClustering(3, n_init=1, pretrain_epochs=5, max_iter=50, random_state=0)
    model.fit(items.features, pairs=pairs)
    path = write_report(folder / "report.html", items, model, pairs, map_method="pca")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.errors = note_errors(page)
        page.requests = []
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(Path(path).as_uri())
        yield page


def test_it_loads_nothing_and_nothing_goes_wrong(page: Any) -> None:
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert page.errors == []
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_pointing_at_a_dot_tells_about_it(page: Any) -> None:
    place = page.evaluate(
        """() => {
          const data = JSON.parse(document.getElementById("map-data").textContent);
          const map = document.getElementById("map");
          map.scrollIntoView();
          const at = new DOMPoint(data.x[0], data.y[0]).matrixTransform(map.getScreenCTM());
          return [at.x, at.y, data.name.length];
        }"""
    )
    assert place[2] == 150
    page.mouse.move(*place[:2])
    told = page.locator("#map-told")
    assert told.locator(".id").inner_text().startswith("<b>flower ")  # as text
    assert "% sure" in told.locator(".where").inner_text()
    assert page.errors == []


def test_arrow_keys_go_from_dot_to_dot(page: Any) -> None:
    page.locator("#map").focus()
    page.keyboard.press("Escape")
    assert page.locator("#map-told .hint").count() == 1
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
        seen.append(page.locator("#map-told .id").inner_text())
    assert len(set(seen)) > 2


def test_a_cluster_is_shown_alone(page: Any) -> None:
    button = page.locator(".map-legend button").first
    cluster = button.get_attribute("data-cluster")
    button.click()
    quiet = page.eval_on_selector_all(".points path.quiet", "paths => paths.map(path => path.dataset.cluster)")
    assert button.get_attribute("aria-pressed") == "true"
    assert quiet
    assert cluster not in quiet
    button.click()
    assert page.locator(".points path.quiet").count() == 0
