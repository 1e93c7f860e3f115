"""The page in a real browser: a whole session by keyboard, undo, reload, two people, every view.

With ``PAIRMARGIN_SCREENSHOTS=docs`` the pictures of the documentation are made anew.
"""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from real_browser import chromium, needs_chromium, note_errors
from sklearn.datasets import load_digits

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
Image = pytest.importorskip("PIL.Image")
expect = playwright.expect

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SHOWN = {  # what is there when a view is complete
    "ask": ".face img", "clusters": ".tile img", "map": ".map[data-drawn]", "answers": ".entry", "export": ".cards",
}  # fmt: skip
DRAWN = "() => [...document.images].every(image => image.complete || image.getBoundingClientRect().top > innerHeight)"
WAIT = 60_000  # milliseconds, on a machine that does other things too
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with chromium() as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_page_stays_open(browser) -> Iterator[None]:
    yield
    for context in browser.contexts:
        context.close()


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    """Pictures of handwritten digits, 0 to 3, whose names begin with the digit."""
    folder = tmp_path_factory.mktemp("data") / "digits"
    folder.mkdir()
    data = load_digits()
    for k in np.flatnonzero(data.target < 4)[:160].tolist():
        light = (data.images[k] * 255 / 16).astype(np.uint8)
        Image.fromarray(light).resize((64, 64), Image.Resampling.BICUBIC).save(folder / f"{data.target[k]}-{k:04d}.png")
    return folder


class Command:
    """``pairmargin label`` as a user runs it."""

    def __init__(self, data: Path, folder: Path, *options: str) -> None:
        arguments = ["label", str(data), "--session", str(folder), "--no-browser", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pairmargin", *arguments], stdout=subprocess.PIPE, text=True
        )
        for line in self.process.stdout:
            if found := re.search(r"http://\S+", line):
                self.link = found[0]
                return
        raise AssertionError("the command printed no link")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait(60)


@pytest.fixture
def command(digits, tmp_path) -> Iterator[Command]:
    started = Command(digits, tmp_path / "session", "--clusters", "4")
    yield started
    if started.process.poll() is None:
        started.stop()


def a_page(browser, link, name="Ada", **options):
    """A page on which somebody has given a name; whatever goes wrong on it is an error of the test."""
    options = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB"} | options
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.errors = note_errors(page)
    page.goto(link)
    page.fill("#name-input", name)
    page.press("#name-input", "Enter")
    page.wait_for_selector(".face img")
    return page


def truth(page) -> str:
    """The right key for the question on the screen."""
    one, other = page.locator(".ask .face figcaption").all_inner_texts()
    return "s" if one[0] == other[0] else "d"


def answer(page, key=None) -> tuple[str, str]:
    """Answer by key, and wait until the next question is there and the answer is saved; the question."""
    asked = tuple(page.locator(".ask .face figcaption").all_inner_texts())
    n = answered(page)
    page.keyboard.press(key or truth(page))
    page.wait_for_function("n => Number(document.querySelector('.figures dd').textContent) === n", arg=n + (key != "u"))
    return asked


def answered(page) -> int:
    return int(page.locator(".figures dd").first.inner_text())


def go(page, view):
    page.locator(f"nav a[href='#{view}']").click()
    page.wait_for_selector(f"main.view-{view}")


def test_a_whole_session_by_keyboard(browser, command, tmp_path):
    page = a_page(browser, command.link)
    assert "token" not in page.url
    asked = [answer(page) for _ in range(25)]
    assert len(set(asked)) == 25
    page.wait_for_function("() => Number(document.body.dataset.version) >= 1")  # it has learned meanwhile
    page.keyboard.press("Tab")
    for _ in range(20):  # by keys alone to the last view
        if page.evaluate("document.activeElement.hash") == "#export":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".cards")
    with page.expect_download() as download:
        page.locator("a[href='/export/pairs.csv']").press("Enter")
    download.value.save_as(tmp_path / "pairs.csv")
    rows = list(csv.DictReader((tmp_path / "pairs.csv").read_text().splitlines()))
    assert len(rows) == 25
    assert {row["who"] for row in rows} == {"Ada"}
    assert all((row["a"][0] == row["b"][0]) == (row["same"] == "true") for row in rows)
    assert page.errors == []


def test_undo_goes_back_to_the_question(browser, command):
    page = a_page(browser, command.link)
    first, second = answer(page), answer(page)
    page.keyboard.press("Backspace")
    page.wait_for_function("() => document.querySelector('.figures dd').textContent === '1'")
    assert tuple(page.locator(".ask .face figcaption").all_inner_texts()) == second
    page.locator(".answer.back").click()
    page.wait_for_function("() => document.querySelector('.figures dd').textContent === '0'")
    assert tuple(page.locator(".ask .face figcaption").all_inner_texts()) == first
    assert page.errors == []


def test_a_reload_loses_nothing(browser, command):
    page = a_page(browser, command.link)
    for _ in range(3):
        answer(page)
    shown = page.locator(".ask .face figcaption").all_inner_texts()
    page.reload()
    page.wait_for_selector(".face img")
    assert answered(page) == 3
    assert page.locator(".ask .face figcaption").all_inner_texts() == shown
    assert page.locator("#person").inner_text() == "Ada"


def test_the_session_goes_on_after_the_command_ends(browser, digits, tmp_path):
    first = Command(digits, tmp_path / "session", "--clusters", "4")
    page = a_page(browser, first.link)
    for _ in range(3):
        answer(page)
    page.context.close()
    assert first.stop() in (0, 130)
    again = Command(digits, tmp_path / "session")
    try:
        page = a_page(browser, again.link)
        assert answered(page) == 3
    finally:
        again.stop()


def test_two_people_at_once(browser, command):
    ada, bob = (a_page(browser, command.link, name) for name in ("Ada", "Bob"))
    asked = {name: set() for name in ("Ada", "Bob")}
    for k in range(6):
        for name, page in {"Ada": ada, "Bob": bob}.items():
            asked[name].add(tuple(page.locator(".ask .face figcaption").all_inner_texts()))
            page.keyboard.press(truth(page))
            number = f"{2 * k + 1 + (name == 'Bob')}"
            page.wait_for_function("n => document.querySelector('.figures dd').textContent === n", arg=number)
    assert not asked["Ada"] & asked["Bob"]
    go(ada, "answers")
    expect(ada.locator(".entry")).to_have_count(12)
    assert "Ada: 6, Bob: 6" in ada.locator(".hint").inner_text()


def test_the_map_can_be_hovered_and_zoomed(browser, command):
    page = a_page(browser, command.link)
    answer(page)
    go(page, "map")
    page.wait_for_selector(".map[data-drawn]")
    ink = "() => { const c = document.querySelector('.map canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let k = 3; k < d.length; k += 4) n += d[k] > 0; return n; }"  # noqa: E501
    before = page.evaluate(ink)
    assert before > 160
    box = page.locator(".map").bounding_box()
    for k in range(400):  # somewhere there is a dot
        page.mouse.move(
            box["x"] + box["width"] * (0.3 + 0.02 * (k % 20)), box["y"] + box["height"] * (0.2 + 0.03 * (k // 20))
        )
        if page.locator(".hover:not([hidden])").count():
            break
    expect(page.locator(".hover .soft")).to_contain_text(".png")
    expect(page.locator(".hover .cluster")).to_contain_text("Cluster ")
    page.mouse.wheel(0, -600)
    page.wait_for_function(f"before => ({ink})() !== before", arg=before)
    assert page.errors == []


def test_the_map_is_read_by_keys_alone(browser, command):
    page = a_page(browser, command.link)
    go(page, "map")
    page.wait_for_selector(".map[data-drawn]")
    canvas, card = page.locator(".map canvas"), page.locator(".hover")
    canvas.press("Enter")
    expect(card.locator(".soft")).to_contain_text(".png")
    first = card.inner_text()
    canvas.press("Escape")
    expect(card).to_be_hidden()
    for _ in range(8):
        canvas.press("ArrowRight")
    canvas.press("Enter")
    expect(card).to_be_visible()
    expect(card).not_to_have_text(first)
    box, place = page.locator(".map").bounding_box(), card.bounding_box()
    assert abs(place["x"] - box["x"] - box["width"] / 2) < 20  # beside the dot, which is in the middle now
    assert page.errors == []


def test_an_item_is_dragged_to_another_shelf(browser, command):
    page = a_page(browser, command.link)
    go(page, "clusters")
    page.wait_for_selector(".shelf .tile img")
    source, target = page.locator(".shelf").nth(0), page.locator(".shelf").nth(1)
    size = source.locator(".tiles").first.locator("li").count()
    source.locator(".tile").first.drag_to(target.locator(".shelf-head"))
    expect(source.locator(".tiles").first.locator("li")).to_have_count(size - 1)
    go(page, "answers")
    expect(page.locator(".entry")).to_have_count(2)
    page.locator(".entry").first.get_by_role("button", name="Delete").click()
    expect(page.locator(".entry")).to_have_count(1)
    assert page.errors == []


def test_a_shelf_gets_a_name_that_is_only_text(browser, command):
    page = a_page(browser, command.link)
    go(page, "clusters")
    name = "<img src=x onerror=alert(1)>"
    page.locator(".shelf .name").first.fill(name)
    page.locator(".shelf .name").first.press("Enter")
    page.locator(".shelf").nth(1).get_by_role("button", name="Same as").click()
    expect(page.locator(".choice").first).to_have_text(name)
    page.keyboard.press("Escape")
    go(page, "map")
    expect(page.locator(".legend li").first).to_contain_text(name)
    assert page.errors == []


def test_a_name_that_is_typed_while_it_learns_is_kept(browser, command):
    ada, bob = (a_page(browser, command.link, who) for who in ("Ada", "Bob"))
    for _ in range(3):
        answer(bob)
    go(ada, "clusters")
    ada.locator(".shelf .name").first.press_sequentially("zeros")
    known = int(ada.evaluate("document.body.dataset.version"))
    go(bob, "answers")
    bob.get_by_role("button", name="Learn now").click()
    ada.wait_for_function("known => Number(document.body.dataset.version) > known", arg=known)
    ada.locator(".shelf .name").first.press("Enter")
    go(ada, "map")
    expect(ada.locator(".legend li", has_text="zeros")).to_have_count(1)
    assert ada.errors == bob.errors == []


def test_escape_leaves_the_persons_name_as_it_was(browser, command):
    page = a_page(browser, command.link)
    for key, name in (("Escape", "Ada"), ("Enter", "Bob")):
        page.locator("#person").click()
        page.fill("#name-input", "Bob")
        page.press("#name-input", key)
        expect(page.locator("#person")).to_have_text(name)
    assert page.errors == []


def test_german_and_touch(browser, command):
    phone = {"locale": "de-DE", "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = a_page(browser, command.link, **phone)
    assert page.locator("h1").inner_text() == "Sind diese beiden gleich?"
    assert page.evaluate("document.documentElement.lang") == "de"
    page.get_by_role("button", name="Gleich").tap()
    page.wait_for_function("() => document.querySelector('.figures dd').textContent === '1'")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_texts_and_tables_are_text(browser, tmp_path):
    table = tmp_path / "people.csv"
    rows = [f"<script>alert({k})</script>,{k % 3},{'red' if k % 2 else 'blue'}" for k in range(20)]
    table.write_text("\n".join(["name,size,colour", *rows]) + "\n")
    command = Command(table, tmp_path / "session", "--clusters", "2", "--id", "name")
    try:
        page = browser.new_page(locale="en-GB")
        page.goto(command.link)
        page.press("#name-input", "Enter")
        page.wait_for_selector(".face td")
        assert "<script>alert(" in page.locator(".face figcaption").first.inner_text()
        differing = page.locator(".face").first.locator("tr.differs")
        cells = [page.locator(".face").nth(k).locator("td").all_inner_texts() for k in (0, 1)]
        assert differing.count() == sum(a != b for a, b in zip(*cells, strict=True))
    finally:
        command.stop()


def test_a_slow_server_is_not_asked_twice(browser, command):
    """Whoever answers faster than the answers travel sees every question once."""
    page = a_page(browser, command.link)
    page.route("**/api/answer", lambda route: (page.wait_for_timeout(150), route.continue_()))
    seen = []
    for _ in range(8):
        seen.append(tuple(page.locator(".ask .face figcaption").all_inner_texts()))
        page.keyboard.press(truth(page))
    page.wait_for_function("() => document.querySelector('.figures dd').textContent === '8'")
    assert len(set(seen)) == 8
    assert page.errors == []


def test_an_answer_that_is_lost_is_asked_again(browser, command):
    page = a_page(browser, command.link)
    first = page.locator(".ask .face figcaption").all_inner_texts()
    page.route("**/api/answer", lambda route: route.abort())
    page.keyboard.press("s")
    expect(page.locator("#status")).to_contain_text("lost its server")
    second = page.locator(".ask .face figcaption").all_inner_texts()
    assert second != first  # what is looked at stays on the screen
    page.unroute("**/api/answer")
    answer(page)
    assert page.locator(".ask .face figcaption").all_inner_texts() == first
    go(page, "answers")
    expect(page.locator(".entry")).to_have_count(1)


def test_keys_answer_nothing_that_is_not_on_the_screen(browser, command):
    page = a_page(browser, command.link)
    go(page, "answers")
    page.route("**/api/questions*", lambda route: (page.wait_for_timeout(1000), route.continue_()))
    go(page, "ask")
    page.wait_for_selector(".ask .answers")
    go(page, "export")
    page.wait_for_selector(".cards")
    page.wait_for_timeout(1500)
    page.keyboard.press("s")
    go(page, "answers")
    expect(page.locator(".empty")).to_be_visible()
    assert page.errors == []


def test_shelves_follow_what_was_learned_and_the_focus_stays(browser, command):
    page = a_page(browser, command.link)
    page.wait_for_function("() => Number(document.body.dataset.version) >= 1")
    go(page, "clusters")
    page.wait_for_selector(".shelf .tile img")
    merge = page.locator(".shelf").first.get_by_role("button", name="Same as")
    merge.press("Enter")
    page.locator(".choice").first.press("Enter")
    expect(page.locator(".shelf")).to_have_count(3, timeout=WAIT)
    assert page.evaluate("document.activeElement.dataset.focus") == "merge-0"
    assert page.errors == []


def test_an_item_is_moved_by_keys_alone(browser, command):
    page = a_page(browser, command.link)
    go(page, "clusters")
    page.wait_for_selector(".shelf .tile img")
    first, second = (page.locator(".shelf").first.locator(".tile").nth(k).get_attribute("data-focus") for k in (0, 1))
    page.locator(f"[data-focus={first}]").press("Enter")
    expect(page.locator("dialog[open]")).to_have_accessible_name("Where does it belong?")
    page.keyboard.press("Enter")  # the first choice has the focus
    page.wait_for_selector(f"[data-focus={first}]", state="detached")
    assert page.evaluate("document.activeElement.dataset.focus") == second
    expect(page.get_by_role("status")).to_contain_text("Understood")
    assert page.errors == []


def test_everything_has_a_role_and_a_name(browser, command):
    page = a_page(browser, command.link)
    answer(page)
    page.locator("body").press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    go(page, "answers")
    page.locator(".skip").press("Enter")
    expect(page.locator("main.view-answers")).to_be_focused()  # and not another view
    for view, told in {
        "ask": ['figure "First item: ', 'button "Same"', 'button "Back"', "term: answered", "status"],
        "clusters": ['region "Cluster 0"', 'textbox "Name of the cluster"', 'button "Split"', ".png, "],
        "map": ['application "Map', 'checkbox "Show the answers"', "listitem: Cluster 0"],
        "answers": ["listitem", 'button "Delete"', 'button "Change to “'],
        "export": ['link "Download: labels.csv"', 'link "Download: report.html"'],
    }.items():
        go(page, view)
        page.wait_for_selector(SHOWN[view])
        tree = page.locator("body").aria_snapshot()
        assert [each for each in told if each not in tree] == []
        nameless = "() => [...document.querySelectorAll('a, button, input, canvas[tabindex], [role=group]')].filter(e => e.checkVisibility() && !(e.ariaLabel || e.innerText || e.labels?.length || e.getAttribute('aria-labelledby'))).map(e => e.outerHTML)"  # noqa: E501
        assert page.evaluate(nameless) == []
    go(page, "ask")
    expect(page.locator(".ask .pair")).to_have_attribute("aria-live", "polite")  # the next question is read out


CONTRAST = """() => {
  const light = (colour) => colour.map((part) => part / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, k) => sum + part * [0.2126, 0.7152, 0.0722][k], 0);
  const parts = (text) => [...text.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const over = (upper, lower) => lower.map((part, k) => upper[k] * upper[3] + part * (1 - upper[3]));
  const own = (each) => parts(getComputedStyle(each).backgroundColor);
  const behind = (each) => (each ? over(own(each), behind(each.parentElement)) : [255, 255, 255]);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = [];
  while (texts.nextNode()) {
    const each = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !each.checkVisibility() || each.closest(":disabled")) continue;
    const ground = behind(each);
    const [more, less] = [over(parts(getComputedStyle(each).color), ground), ground].map(light).sort((a, b) => b - a);
    if ((more + 0.05) / (less + 0.05) < 4.5) poor.push(texts.currentNode.textContent);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(browser, command, scheme):
    """The contrast is at least 4.5, as WCAG AA asks."""
    page = a_page(browser, command.link, color_scheme=scheme)
    answer(page)
    for view in SHOWN:
        go(page, view)
        page.wait_for_selector(SHOWN[view])
        assert page.evaluate(CONTRAST) == []


def test_a_touch_tells_what_a_dot_is(browser, command):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = a_page(browser, command.link, **phone)
    go(page, "map")
    page.wait_for_selector(".map[data-drawn]")
    place = "() => { const c = document.querySelector('.map canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const k = d.findIndex((v, k) => k % 4 === 3 && v > 200) >> 2; const r = devicePixelRatio; return [(k % c.width) / r, Math.floor(k / c.width) / r]; }"  # noqa: E501
    x, y = page.evaluate(place)
    box = page.locator(".map").bounding_box()
    page.touchscreen.tap(box["x"] + x, box["y"] + y)
    expect(page.locator(".hover .soft")).to_contain_text(".png")
    expect(page.locator(".hover .cluster")).to_contain_text("Cluster ")
    assert page.errors == []


def test_words_in_both_texts_are_marked_and_those_of_most_texts_are_not(browser, tmp_path):
    table = tmp_path / "texts.csv"
    rows = [f"n{k},with {'harbour' if k % 2 else 'kitchen'} and <b>word{k}</b>" for k in range(20)]
    table.write_text("\n".join(["name,text", *rows]) + "\n")
    command = Command(table, tmp_path / "session", "--clusters", "2", "--id", "name", "--text", "text")
    try:
        page = browser.new_page(locale="en-GB")
        page.goto(command.link)
        page.press("#name-input", "Enter")
        for _ in range(6):
            page.wait_for_selector(".face .text")
            one, other = (page.locator(".face .text").nth(k).inner_text() for k in (0, 1))
            assert "<b>word" in one
            shared = {"harbour", "kitchen"} & set(one.split()) & set(other.split())
            assert set(page.locator(".face mark").all_inner_texts()) == shared
            asked = page.locator(".pair").get_attribute("data-pair")
            page.keyboard.press("s" if shared else "d")
            page.wait_for_function("was => document.querySelector('.pair').dataset.pair !== was", arg=asked)
    finally:
        command.stop()


def test_pictures_of_every_view(browser, command, tmp_path):
    """Each view is drawn in light and dark, and on a phone; with no part of it running over the edge."""
    page = a_page(browser, command.link)
    for _ in range(22):
        answer(page)
    page.wait_for_function("() => Number(document.body.dataset.version) >= 2")
    out = PICTURES if os.environ.get("PAIRMARGIN_SCREENSHOTS") == "docs" else tmp_path
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        for view in ("clusters", "map", "answers", "export", "ask"):
            go(page, view)
            page.wait_for_selector(SHOWN[view])
            page.wait_for_function(DRAWN)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            if width == 1280 and scheme == "light":
                page.screenshot(path=out / f"label-{view}.png")
            else:
                page.screenshot(path=tmp_path / f"{view}-{width}-{scheme}.png")
    assert (out / "label-ask.png").stat().st_size > 10_000
