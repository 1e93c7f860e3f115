"""How smooth the map is with 50 000 dots, in a real browser: frames while it moves, and how soon a dot says what it is.

    python benchmarks/label_map.py [--items 50000] [--answers 1000] [--out results/label-map.csv]

A frame's time is from one animation frame to the next while the wheel turns or the map is dragged, as the browser
itself measures it; a dot's time is from the pointer's move to the frame with its card. The browser draws without a
graphics card.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from label_latency import FLAGS
from label_load import tell
from pairmargin import LabelingSession, read_items
from pairmargin.web.faces import Faces
from pairmargin.web.security import new_token
from pairmargin.web.serving import listening, serve

CLUSTERS, FEATURES = 10, 10
WATCH = """() => {
  window.frames_ = [];
  let last = 0;
  const tick = (now) => {
    if (last && window.isMoving) window.frames_.push(now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  window.cards = [];
  let moved = 0;
  addEventListener("pointermove", () => { moved = performance.now(); }, true);
  new MutationObserver(() => {
    const began = moved;
    if (began) requestAnimationFrame(() => requestAnimationFrame(() => window.cards.push(performance.now() - began)));
    moved = 0;
  }).observe(document.querySelector(".hover"), { childList: true });
}"""


def a_session(home: Path, n: int, n_answers: int) -> tuple[LabelingSession, Faces]:
    """Points in clusters that touch, and answers that are right."""
    rng = np.random.RandomState(0)
    label = rng.randint(CLUSTERS, size=n)
    points = 2.5 * rng.randn(CLUSTERS, FEATURES)[label] + rng.randn(n, FEATURES)
    np.save(home / "points.npy", points.astype(np.float32))
    items = read_items(home / "points.npy")
    session = LabelingSession(items, CLUSTERS)
    session.store.add_all(
        ("", items.ids[i], items.ids[j], "same" if label[i] == label[j] else "different")
        for i, j in rng.choice(n, (n_answers, 2), replace=False).tolist()
    )
    session._recount()
    return session, Faces(items, home)


def opened(page: Page, session: LabelingSession, faces: Faces) -> None:
    """The map, drawn."""
    links: list[str] = []
    there = threading.Event()

    def on_start(link: str) -> None:
        links.append(link)
        there.set()

    sock = listening("127.0.0.1", 0)
    threading.Thread(target=serve, args=(session, faces, sock, new_token(), on_start), daemon=True).start()
    there.wait()
    page.goto(links[0], wait_until="commit")
    page.wait_for_selector("#name-dialog[open]")
    page.press("#name-input", "Enter")
    page.click("nav a[href='#map']")
    page.wait_for_selector(".map[data-drawn]")


def frames(page: Page, move: Any) -> list[float]:
    """The times of the frames while something moves, in milliseconds."""
    page.wait_for_timeout(300)
    page.evaluate("() => { window.frames_ = []; window.isMoving = true; }")
    move()
    page.evaluate("() => { window.isMoving = false; }")
    return list(page.evaluate("window.frames_"))


def measured(page: Page) -> dict[str, list[float]]:
    box = page.locator(".map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def zoom(delta: int) -> None:
        for _ in range(60):
            page.mouse.wheel(0, delta)

    def drag() -> None:
        page.mouse.down()
        for k in range(120):
            page.mouse.move(x + 200 * np.sin(k / 10), y + 150 * np.sin(k / 7))
        page.mouse.up()

    page.evaluate(WATCH)
    found: dict[str, list[float]] = {"zooming": [], "moving": [], "hovering": []}
    for _ in range(3):
        page.mouse.move(x, y)
        found["moving"] += frames(page, drag)
        found["zooming"] += frames(page, lambda: zoom(-20))
        page.mouse.move(x, y)
        found["moving"] += frames(page, drag)
        found["zooming"] += frames(page, lambda: zoom(20))
    page.click("text=Show all")
    rng = np.random.RandomState(0)
    for across, down in rng.uniform(0.3, 0.7, (100, 2)).tolist():
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
        page.wait_for_timeout(100)
    found["hovering"] = list(page.evaluate("window.cards"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--answers", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    busy = f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors before it began"
    with tempfile.TemporaryDirectory() as home, sync_playwright() as driver:
        session, faces = a_session(Path(home), options.items, options.answers)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-GB")
        page.set_default_timeout(120_000)
        opened(page, session, faces)
        found = measured(page)
        browser.close()
    figures: dict[str, Any] = {"dots": options.items, "lines": options.answers}
    for name, times in found.items():
        figures |= {
            f"{'dots' if name == 'hovering' else 'frames'} {name}": len(times),
            f"median ms {name}": round(float(np.median(times)), 1),
            f"95th percentile ms {name}": round(float(np.percentile(times, 95)), 1),
        }
    tell(figures | {"other work on the machine": busy}, options.out)


if __name__ == "__main__":
    main()
