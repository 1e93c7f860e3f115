"""The server is killed (SIGKILL) at a random moment, a hundred times, while people answer.

Every answer that was acknowledged must be there afterwards, once.

    python benchmarks/label_kill.py [--times 100] [--out results/label-kill.csv]
"""

from __future__ import annotations

import argparse
import random
import secrets
import signal
import tempfile
import threading
import time
from http.client import HTTPException
from pathlib import Path

from label_load import Client, Server, judge, tell, write_pictures
from pairmargin.web.store import FILE, AnswerStore

PEOPLE, PICTURES = 4, 1000


def answer_until_killed(server: Server, who: str, acknowledged: dict[int, tuple[str, ...]]) -> None:
    client = Client(server, who)
    try:
        questions = client.get(f"/api/questions?who={who}&n=2")
        while questions:
            question = questions[0]
            body = {"pair": question["pair"], "answer": judge(question), "key": secrets.token_hex(8), "n": 2}
            reply = client.post("answer", body)
            acknowledged[reply["number"]] = tuple(sorted(face["id"] for face in question["faces"]))
            questions = reply["questions"]
    except (OSError, HTTPException):
        return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    times = options.times
    chance, acknowledged = random.Random(0), dict[int, tuple[str, ...]]()
    with tempfile.TemporaryDirectory() as home:
        data, folder = Path(home) / "pictures", Path(home) / "session"
        write_pictures(data, PICTURES)
        for k in range(times):
            server = Server(data, folder, "--clusters", "10")
            people = [
                threading.Thread(target=answer_until_killed, args=(server, f"p{who}", acknowledged))
                for who in range(PEOPLE)
            ]
            for person in people:
                person.start()
            before = len(acknowledged)
            enough = before + chance.randint(1, 40)
            while len(acknowledged) < enough and any(person.is_alive() for person in people):
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.02))
            server.stop(signal.SIGKILL)
            for person in people:
                person.join()
            if len(acknowledged) == before:
                raise SystemExit(f"before kill {k + 1}, nothing was answered: a kill that nothing could be lost by")
            store = AnswerStore(folder / FILE)
            stored = {row.number: row.pair for row in store.log()}
            keys = [row.key for row in store.log()]
            store.close()
            lost = [number for number, pair in acknowledged.items() if stored.get(number) != pair]
            print(f"\rkilled {k + 1} times, {len(acknowledged)} answers acknowledged", end="", flush=True)
            if lost or len(set(keys)) < len(keys):
                raise SystemExit(f"after kill {k + 1}: lost {lost}, doubled {len(keys) - len(set(keys))}")
    print()
    found = {"killed": times, "answers acknowledged": len(acknowledged), "answers stored": len(stored)}
    tell(found | {"lost": 0, "doubled": 0}, options.out)


if __name__ == "__main__":
    main()
