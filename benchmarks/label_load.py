"""Twenty people answer at once, 50 answers a second for a minute, while refits go on.

Is anything lost or doubled, and how long does the next question take?

    python benchmarks/label_load.py [--people 20] [--rate 50] [--seconds 60] [--items 5000] [--out FILE]
    python benchmarks/label_load.py --minutes 10 --rate 10 --out results/label-soak.csv

The data are pictures of MNIST in a folder, the server is the command itself in a process of its own, and the people are
threads of this one, each with a connection that it keeps. An answer's time is from sending it until the reply with the
next questions has been read. Memory is that of the server's process and of the one that learns, looked at every second
(Linux only); its slope is that of a line through the second half of the time.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from pairmargin import load_dataset
from pairmargin.web.store import FILE, AnswerStore


class Server:
    """``pairmargin label`` in a process of its own."""

    def __init__(self, data: Path, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "pairmargin", "label", str(data), "--session", str(folder), "--no-browser"]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"http://([\d.]+):(\d+)/\?token=(\S+)", line):
                self.host, self.port, self.token = found[1], int(found[2]), found[3]
                return
        raise SystemExit("the server did not start")

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(number)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Client:
    """One person's connection."""

    def __init__(self, server: Server, who: str) -> None:
        self.who, self.server = who, server
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        origin = f"http://{server.host}:{server.port}"
        self.headers = {"Cookie": f"pairmargin-{server.port}={server.token}", "Origin": origin}

    def get(self, path: str) -> Any:
        self.connection.request("GET", path, headers=self.headers)
        return self._reply()

    def post(self, name: str, body: dict[str, Any]) -> Any:
        headers = self.headers | {"Content-Type": "application/json"}
        self.connection.request("POST", f"/api/{name}", json.dumps({"who": self.who} | body), headers)
        return self._reply()

    def _reply(self) -> Any:
        response = self.connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{response.status} {content[:200]!r}")
        return json.loads(content)


def write_pictures(folder: Path, n: int) -> None:
    """MNIST as files whose names begin with the digit."""
    from PIL import Image

    folder.mkdir()
    mnist = load_dataset("mnist")
    brightest = mnist.data.max()
    for k in range(n):
        pixels = np.rint(255 * mnist.data[k].reshape(28, 28) / brightest).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{mnist.target[k]}-{k:05d}.png")


def judge(question: dict[str, Any]) -> str:
    one, other = (face["id"][0] for face in question["faces"])
    return "same" if one == other else "different"


class Memory(threading.Thread):
    """Looks every second at the memory of the server and of its child, in MB."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.ended = process, threading.Event()
        self.seen: list[tuple[float, float, float]] = []  # when, server, learner

    def run(self) -> None:
        while not self.ended.wait(1):
            try:
                children = Path(f"/proc/{self.process}/task/{self.process}/children").read_text().split()
                server, learner = resident(self.process), sum(resident(int(child)) for child in children)
            except OSError:
                continue
            self.seen.append((time.perf_counter(), server, learner))

    def figures(self) -> dict[str, Any]:
        """Largest, last, and MB a minute over the second half."""
        told: dict[str, Any] = {}
        if len(self.seen) < 4:
            return told
        when, *sizes = np.array(self.seen).T
        half = len(when) // 2
        for name, size in zip(("server", "learner"), sizes, strict=True):
            slope = np.polyfit(when[half:] - when[half], size[half:], 1)[0] * 60
            told |= {f"{name} MB at most": round(size.max(), 1), f"{name} MB at the end": round(size[-1], 1)}
            told[f"{name} MB more a minute"] = round(slope, 2)
        return told


def resident(process: int) -> float:
    """The memory that a process has in RAM, in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Person(threading.Thread):
    """Answers at an even pace, and notes what was acknowledged and how long it took."""

    def __init__(self, server: Server, who: str, start: float, every: float, n: int) -> None:
        super().__init__()
        self.client, self.begin, self.every, self.n = Client(server, who), start, every, n
        self.acknowledged: dict[int, tuple[str, ...]] = {}  # number in the log: the ids
        self.taken: list[float] = []
        self.learning: list[bool] = []
        self.errors: list[str] = []

    def run(self) -> None:
        try:
            questions = self.client.get(f"/api/questions?who={self.client.who}&n=4")
            for k in range(self.n):
                time.sleep(max(0.0, self.begin + k * self.every - time.perf_counter()))
                question = questions[0]
                body = {"pair": question["pair"], "answer": judge(question), "key": secrets.token_hex(8), "n": 4}
                sent = time.perf_counter()
                reply = self.client.post("answer", body)
                self.taken.append(time.perf_counter() - sent)
                self.learning.append(reply["state"]["learning"])
                self.acknowledged[reply["number"]] = tuple(sorted(face["id"] for face in question["faces"]))
                questions = reply["questions"]
        except Exception as error:
            self.errors.append(f"{self.client.who}: {error!r}")


def run(options: argparse.Namespace) -> dict[str, Any]:
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as home:
        data, folder = Path(home) / "pictures", Path(home) / "session"
        write_pictures(data, options.items)
        server = Server(data, folder, "--clusters", "10")
        every, start = options.people / options.rate, time.perf_counter() + 1
        n = round(options.seconds / every)
        people = [Person(server, f"p{k}", start + k * every / options.people, every, n) for k in range(options.people)]
        memory = Memory(server.process.pid)
        memory.start()
        for person in people:
            person.start()
        for person in people:
            person.join()
        took = time.perf_counter() - start
        memory.ended.set()
        memory.join()
        server.stop()
        log = AnswerStore(folder / FILE).log()
    taken = np.concatenate([person.taken for person in people])
    while_learning = taken[np.concatenate([person.learning for person in people])]
    acknowledged = {number: pair for person in people for number, pair in person.acknowledged.items()}
    stored = {row.number: row.pair for row in log}
    return {
        "people": options.people,
        "items": options.items,
        "answers": len(taken),
        "answers a second": round(len(taken) / took, 1),
        "errors": sum(len(person.errors) for person in people),
        "lost": sum(stored.get(number) != pair for number, pair in acknowledged.items()),
        "doubled": len(log) - len(acknowledged),
        "median ms": round(1000 * float(np.median(taken)), 1),
        "95th percentile ms": round(1000 * float(np.percentile(taken, 95)), 1),
        "99th percentile ms": round(1000 * float(np.percentile(taken, 99)), 1),
        "95th percentile ms while learning": round(1000 * float(np.percentile(while_learning, 95)), 1)
        if len(while_learning)
        else None,
        "answers while learning": len(while_learning),
        **memory.figures(),
        "other work on the machine": f"load {before:.1f} of {os.cpu_count()} processors before it began",
        "first error": next((error for person in people for error in person.errors), ""),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--minutes", type=float, help="a longer time, in place of --seconds")
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.minutes:
        options.seconds = 60 * options.minutes
    tell(run(options), options.out)


def tell(found: dict[str, Any], out: Path | None) -> None:
    """Figures on the screen, and in a file."""
    for name, value in found.items():
        print(f"{name:44}{value}")
    if out:
        with out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("figure", "value"), *found.items()])


if __name__ == "__main__":
    main()
