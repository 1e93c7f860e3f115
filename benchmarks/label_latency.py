"""How long after a key the next question is on the screen, in a real browser, while 5000 pictures are learned anew.

    python benchmarks/label_latency.py [--answers 100] [--items 5000] [--out results/label-latency.csv]

From the key to the first frame in which both new pictures are drawn, as the browser itself measures it; and how long
the times of learning took, as the session keeps it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import pairmargin.web.session
from label_load import Server, tell, write_pictures
from pairmargin.web.serving import open_session

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
WATCH = """() => {
  window.times = [];
  let pressed = 0;
  addEventListener("keydown", () => { pressed = performance.now(); }, true);
  new MutationObserver(async () => {
    const began = pressed;
    if (!began) return;
    pressed = 0;
    await Promise.all([...document.querySelectorAll(".face img")].map((image) => image.decode().catch(() => {})));
    requestAnimationFrame(() => requestAnimationFrame(() => window.times.push(performance.now() - began)));
  }).observe(document.getElementById("view"), { childList: true, subtree: true });
}"""


def seconds_of_a_warm_refit(data: Path, folder: Path) -> float:
    """From asking for it to the new clusters, after ten more answers, in the process of its own."""
    pairmargin.web.session.REFIT_EVERY = 1000  # learn only when asked to
    session, faces = open_session(data, folder, None, {})
    ids = faces.items.ids
    with session:
        session.refit(fresh=False)  # and the other process is ready
        for i, j in session.next_pairs(10).tolist():
            session.answer("same" if ids[i][0] == ids[j][0] else "different", (i, j))
        began = time.perf_counter()
        session.refit(fresh=False)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--pause", type=int, default=500, help="milliseconds that a person looks at a pair")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    busy = f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors before it began"
    with tempfile.TemporaryDirectory() as home, sync_playwright() as driver:
        data, folder = Path(home) / "pictures", Path(home) / "session"
        write_pictures(data, options.items)
        server = Server(data, folder, "--clusters", "10")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        page.goto(f"http://{server.host}:{server.port}/?token={server.token}", wait_until="commit")
        page.wait_for_selector("#name-dialog[open]")
        page.press("#name-input", "Enter")
        page.wait_for_selector(".face img")
        page.evaluate(WATCH)
        learning = 0
        for _ in range(options.answers):
            page.wait_for_timeout(options.pause)
            one, other = page.locator(".ask .face figcaption").all_inner_texts()
            learning += page.evaluate("document.body.dataset.learning") == "true"
            page.keyboard.press("s" if one[0] == other[0] else "d")
        page.wait_for_timeout(2000)
        times = np.array(page.evaluate("window.times"))
        browser.close()
        server.stop()
        warm = seconds_of_a_warm_refit(data, folder)
    figures = {
        "items": options.items,
        "answers": len(times),
        "answers while learning": learning,
        "median ms": round(float(np.median(times)), 1),
        "95th percentile ms": round(float(np.percentile(times, 95)), 1),
        "longest ms": round(float(times.max()), 1),
        "seconds of a warm refit after 10 answers": round(warm, 2),
        "other work on the machine": busy,
    }
    tell(figures, options.out)


if __name__ == "__main__":
    main()
