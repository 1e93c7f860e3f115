"""The page's routes, and what keeps strangers out: every protection is tried."""

from __future__ import annotations

import json
import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pairmargin import LabelingSession, read_items
from pairmargin.web.app import STATIC, make_app
from pairmargin.web.faces import Faces
from pairmargin.web.security import LARGEST_BODY, Guard

Image = pytest.importorskip("PIL.Image")
testclient = pytest.importorskip("starlette.testclient")

TOKEN, PORT = "a-token-that-nobody-knows", 8765
HOME = f"http://127.0.0.1:{PORT}"
QUICK = {"n_init": 1, "pretrain_epochs": 2, "max_iter": 5}


@pytest.fixture
def folder(tmp_path):
    """Twelve pictures, light and dark."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    rng = np.random.RandomState(0)
    for k in range(12):
        shade = rng.randint(0, 60, (8, 8)) + 180 * (k % 2)
        Image.fromarray(shade.astype(np.uint8)).save(pictures / f"p{k:02d}.png")
    (tmp_path / "secret.txt").write_text("nobody may read this")
    return pictures


@pytest.fixture
def session(folder):
    items = read_items(folder)
    with LabelingSession(items, 2, **QUICK) as opened:
        yield opened


def client_of(session, folder, host="127.0.0.1", token=TOKEN):
    app = make_app(session, Faces(session.items, folder), token=token, host=host, port=PORT)
    return testclient.TestClient(app, base_url=HOME, raise_server_exceptions=True)


@pytest.fixture
def stranger(session, folder):
    """A browser that has never seen the link."""
    with client_of(session, folder) as client:
        yield client


@pytest.fixture
def client(stranger):
    """A browser that has opened the link."""
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    return stranger


def post(client, name, body, **headers):
    return client.post(f"/api/{name}", json=body, headers={"Origin": HOME} | headers)


# What the page does


def test_a_question_is_answered_and_taken_back(client, session):
    first = client.get("/api/questions", params={"who": "Ada", "n": 2}).json()
    assert [face["kind"] for face in first[0]["faces"]] == ["image", "image"]
    reply = post(client, "answer", {"who": "Ada", "pair": first[0]["pair"], "answer": "same", "key": "k1", "n": 2})
    assert reply.json()["state"]["progress"]["answers"] == 1
    assert reply.json()["questions"][0]["pair"] == first[1]["pair"]
    assert session.store.current()[0].answer == "same"
    undone = post(client, "undo", {"who": "Ada", "key": "k2", "n": 2}).json()
    assert (undone["undone"], undone["questions"][0]["pair"]) == ("same", first[0]["pair"])
    assert session.store.current() == []


def test_clusters_are_shown_named_and_changed(client, session):
    shelves = client.get("/api/clusters").json()
    assert sum(shelf["size"] for shelf in shelves) == 12
    post(client, "rename", {"like": shelves[0]["sure"][0]["row"], "name": "<b>dark</b>"})
    assert client.get("/api/clusters").json()[0]["name"] == "<b>dark</b>"
    first, second = (shelf["sure"][0]["row"] for shelf in shelves)
    post(client, "move", {"who": "Ada", "row": shelves[0]["sure"][-1]["row"], "like": second})
    assert {row.answer for row in session.store.current()} == {"same", "different"}
    question = client.get("/api/split-question", params={"cluster": 0}).json()
    assert len(question["faces"]) == 2
    assert post(client, "split", {"cluster": 0}).json()["clusters"] == 3
    assert post(client, "merge", {"one": first, "other": second}).json()["clusters"] == 2
    assert post(client, "number", {"clusters": 4}).json()["clusters"] == 4
    assert len(client.get("/api/shelf", params={"cluster": 0, "start": 1}).json()["sure"]) == shelves[0]["size"] - 1


def test_the_map_is_one_piece_of_bytes(client, session):
    content = client.get("/api/map").content
    assert len(content) == 12 * (8 + 2 + 1)
    np.testing.assert_array_equal(np.frombuffer(content, "<f4", 24).reshape(12, 2), session.clustering.places)
    np.testing.assert_array_equal(np.frombuffer(content, "<u2", 12, 96), session.labels)


def test_answers_are_listed_changed_and_deleted(client, session):
    session.answer("same", (0, 1), who="Ada")
    session.answer("different", (0, 1), who="Bob")
    rows = client.get("/api/answers").json()["rows"]
    assert [(row["who"], row["disagreed"]) for row in rows] == [("Bob", True), ("Ada", True)]
    post(client, "change", {"who": "Bob", "pair": [0, 1], "answer": "same"})
    assert session.disagreements == []
    post(client, "change", {"who": "Bob", "pair": [0, 1], "answer": "deleted"})
    assert client.get("/api/answers").json()["total"] == 1
    assert client.get("/api/lines").json() == [[0, 1, 1]]


def test_everything_can_be_taken_home(client, session):
    session.answer("same", (0, 2))
    session.refit()
    for name in ("labels.csv", "pairs.csv", "model.safetensors", "report.html"):
        reply = client.get(f"/export/{name}")
        assert reply.status_code == 200
        assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert len(reply.content) > 20
    assert client.get("/export/labels.csv").text.startswith("id,cluster,name,confidence\np00.png,")


def test_what_is_refused_is_told_in_words(client):
    reply = post(client, "answer", {"pair": [0, 99], "answer": "same"})
    assert (reply.status_code, reply.json()["error"]) == (
        400,
        "pair=[0, 99] must be two different row numbers from 0 to 11",
    )


# What keeps strangers out


def test_without_the_token_nothing_is_shown(stranger):
    for path in ("/", "/static/main.js", "/api/state", "/picture/small/0", "/export/labels.csv", "/api/map"):
        assert stranger.get(path).status_code == 401
        assert stranger.get(path, params={"token": TOKEN[:-1]}).status_code == 401
    assert stranger.get("/", headers={"Cookie": f"pairmargin-{PORT}=wrong"}).status_code == 401
    assert not stranger.cookies


def test_the_link_leaves_a_cookie_that_scripts_and_other_sites_cannot_use(stranger):
    cookie = stranger.get(f"/?token={TOKEN}").headers["set-cookie"]
    assert cookie == f"pairmargin-{PORT}={TOKEN}; HttpOnly; SameSite=Strict; Path=/"
    assert stranger.get("/api/state").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example:8765", "127.0.0.1.evil.example:8765", "127.0.0.1:80", "127.0.0.1", "192.168.0.7:8765", ""]
)
def test_a_name_that_only_leads_here_is_refused(client, host):
    assert client.get("/api/state", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "[::1]:8765"])
def test_this_machines_own_names_are_known(client, host):
    assert Guard(None, token="t", host="127.0.0.1", port=PORT).is_own_host(host)


def test_the_port_of_http_is_left_out_by_browsers():
    guard = Guard(None, token="t", host="127.0.0.1", port=80)
    for host in ("127.0.0.1", "localhost", "[::1]", "127.0.0.1:80"):
        assert guard.is_own_host(host)
    for host in ("evil.example", "", "127.0.0.1:8765"):
        assert not guard.is_own_host(host)


def test_in_the_network_numbers_are_known_and_strange_names_are_not():
    guard = Guard(None, token="t", host="0.0.0.0", port=PORT)
    assert guard.is_own_host("192.168.0.7:8765")
    assert not guard.is_own_host("evil.example:8765")
    assert not guard.is_own_host("192.168.0.7:80")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_pages_cannot_send_answers(client, session, headers):
    reply = post(client, "answer", {"pair": [0, 1], "answer": "same"}, **headers)
    assert reply.status_code == 403
    assert client.post("/api/answer", json={"pair": [0, 1], "answer": "same"}).status_code == 403  # no Origin at all
    assert session.store.log() == []


def test_only_json_is_taken(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        reply = client.post("/api/undo", content=b"{}", headers={"Origin": HOME, "Content-Type": kind})
        assert reply.status_code == 415
    for content in (b"", b"[]", b"{", b"\xff", b"1"):
        reply = client.post("/api/undo", content=content, headers={"Origin": HOME, "Content-Type": "application/json"})
        assert reply.status_code == 400


def test_sizes_are_limited(client):
    headers = {"Origin": HOME, "Content-Type": "application/json"}
    long = b'{"who": "' + b"x" * LARGEST_BODY + b'"}'
    assert client.post("/api/undo", content=long, headers=headers).status_code == 413
    chunks = iter([b'{"who": "Ada"}'])
    assert client.post("/api/undo", content=chunks, headers=headers).status_code == 413  # says no length
    assert post(client, "answer", {"who": "x" * 300, "pair": [0, 1], "answer": "same"}).status_code == 400
    assert post(client, "rename", {"like": 0, "name": "x" * 101}).status_code == 400
    assert post(client, "number", {"clusters": 10**6}).status_code == 400
    assert len(client.get("/api/questions", params={"n": 10**6}).json()) <= 20


@pytest.mark.parametrize(
    "body",
    [{"pair": "01"}, {"pair": [0]}, {"pair": [0, 1.5]}, {"pair": [0, True]}, {"pair": [0, -1]}, {"pair": [0, 10**30]}],
)
def test_odd_values_are_refused(client, body):
    assert post(client, "answer", {"answer": "same"} | body).status_code == 400
    assert post(client, "answer", {"answer": ["same"], "pair": [0, 1]}).status_code == 400
    assert post(client, "move", {"row": 0, "like": "DROP TABLE log"}).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/picture/small/../../secret.txt",
        "/picture/small/..%2f..%2fsecret.txt",
        "/picture/large/99",
        "/picture/small/-1",
        "/picture/huge/0",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/export/../secret.txt",
        "/export/secret.txt",
        "/export/%2fetc%2fpasswd",
        "/secret.txt",
    ],
)
def test_no_path_leads_elsewhere(client, path):
    reply = client.get(path)
    assert reply.status_code in (404, 405)
    assert b"nobody may read" not in reply.content


def test_a_link_out_of_the_folder_is_not_followed(client, folder):
    target = folder.parent / "outside.png"
    Image.new("L", (4, 4)).save(target)
    (folder / "p00.png").unlink()
    (folder / "p00.png").symlink_to(target)
    reply = client.get("/picture/small/0")
    assert (reply.status_code, reply.json()["error"]) == (400, "p00.png is no file of the data any more")


def test_pictures_are_drawn_anew(client, folder):
    path = folder / "p01.png"
    path.write_bytes(path.read_bytes() + b"<script>alert(1)</script>")
    reply = client.get("/picture/large/1")
    assert reply.headers["content-type"] == "image/png"
    assert b"script" not in reply.content
    path.write_bytes(b"GIF89a not an image of ours")
    assert client.get("/picture/small/1").status_code == 400


def test_every_reply_has_the_headers(client):
    for path in ("/", "/api/state", "/static/main.js", "/picture/small/0", "/export/report.html", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_the_page_has_no_inline_script_or_style_and_nothing_from_elsewhere():
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
        assert "eval(" not in text
        assert re.findall(r"https?://(?!www\.w3\.org)[^\"' ]+", text) == []
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)|<style| style=| on\w+=", page) == []


def test_other_methods_are_refused(client):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/api/answer").status_code == 405
    assert client.get("/api/answer").status_code == 405


def test_head_has_no_body_and_odd_methods_are_refused(client, session):
    reply = client.head("/api/state")
    assert (reply.status_code, reply.content) == (200, b"")
    for method in ("FOO", "CONNECT", "PROPFIND"):
        assert client.request(method, "/api/state").status_code == 405
    assert client.head("/api/undo").status_code == 405
    assert session.store.log() == []


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 9000,
        b'{"pair":' + b"[" * 4000 + b"]" * 4000 + b"}",
        b'{"a":' * 1500 + b"1" + b"}" * 1500,
        b'{"pair": [0, ' + b"9" * 5000 + b"]}",
        b'{"pair": [NaN, Infinity], "answer": "same"}',
        b'{"pair": "\\ud800", "answer": "same"}',
        b'{"pair": [0, 1], "answer": "\\ud800"}',
        b'{"pair": [0, 1], "answer": "same", "key": "\\ud800"}',
        b'{"pair": [0, 1], "answer": "same", "key": "' + b"k" * 201 + b'"}',
        b'{"pair": [0, 1], "answer": "same", "who": "\\ud800"}',
        b'{"pair": [0, 1], "answer": "same", "who": "Ada\\u202e"}',
        b'{"pair": {"0": 1}, "answer": "same"}',
        b'{"pair": [0, 1], "answer": null}',
        b'{"pair": [0, 1], "answer": "same", "who": 7}',
        b'{"pair": [0, 1, 2], "answer": "same"}',
        b'{"pair": [], "answer": "same"}',
        b"null",
        b'"text"',
        b"{\x00}",
    ],
)
def test_odd_json_is_refused_in_words_and_leaves_nothing_behind(client, session, content):
    reply = client.post("/api/answer", content=content, headers={"Origin": HOME, "Content-Type": "application/json"})
    assert reply.status_code == 400
    assert reply.json()["error"]
    assert session.store.log() == []


def test_every_address_stands_every_kind_of_value(client):
    """Whatever is sent: an answer in words, never an error of ours."""
    odd = (None, True, -1, 0.5, 10**8, "", "x", "-1", "²", "9" * 500, [], [[0]], {}, "\ud800", "<b>")
    names = ["pair", "row", "cluster", "one", "other", "clusters", "name", "answer", "who", "key", "n", "like"]
    headers = {"Origin": HOME, "Content-Type": "application/json"}
    for address in ("answer", "undo", "change", "rename", "move", "merge", "split", "number", "refit"):
        for value in odd:
            body = json.dumps(dict.fromkeys([*names, "fresh"], value))
            reply = client.post(f"/api/{address}", content=body, headers=headers)
            assert reply.status_code in (200, 400), (address, value)
    for address in ("state", "questions", "clusters", "shelf", "split-question", "answers", "lines", "legend", "face"):
        for value in ("", "-1", "²", "9" * 5000, "0.5", "1e9", "99999", "%ff"):
            reply = client.get(f"/api/{address}", params=dict.fromkeys(("cluster", "row", "start", "n"), value))
            assert reply.status_code in (200, 400), (address, value)


def test_odd_addresses_are_not_found(client):
    for path in (f"/picture/small/{'9' * 5000}", "/picture/small/²", "/picture/small/1e0", "/picture/small/%00"):
        assert client.get(path).status_code == 404
    assert client.get("/static/%00").status_code == 404
    assert client.get(f"/static/{'a' * 3000}").status_code == 404
    assert client.get(f"/{'../' * 500}etc/passwd").status_code == 404
    for path in ("/picture/small/1e0", "/static/<b>", "/<b>", "/export/<b>"):
        reply = client.get(path)
        assert (reply.status_code, reply.headers["content-type"].split(";")[0]) == (404, "text/plain"), path


@pytest.mark.parametrize("length", ["²", "9" * 5000, "-1", "1e3", "10 ", "+10"])
def test_odd_lengths_are_refused(client, length):
    headers = {"Origin": HOME, "Content-Type": "application/json", "Content-Length": length.encode("latin-1")}
    assert client.post("/api/undo", content=b"{}", headers=headers).status_code == 413


def test_names_of_all_scripts_are_kept_as_they_are(client, session):
    joined = ("علی\u200cرضا", "👩\u200d🔬")
    for who in (*joined, "Žofie Ørsted", "李小龍", "🙂", "O'Brien\"); DROP TABLE log; --", "x" * 200, "<b>Ada</b>"):
        reply = post(client, "answer", {"who": who, "pair": [0, 1], "answer": "unsure"})
        assert reply.status_code == 200
        assert who in reply.json()["state"]["people"]
    assert len(session.store.current()) == 8
    session.rename(0, "نیم\u200cفاصله")
    for odd in ("a\nb", "a\u2028b", "a\u202eb"):
        reply = post(client, "rename", {"like": 0, "name": odd})
        assert "no line ends and no control characters" in reply.json()["error"]


def test_an_answer_that_is_sent_again_counts_once_and_its_key_serves_nothing_else(client, session):
    body = {"who": "Ada", "pair": [0, 1], "answer": "same", "key": "k"}
    numbers = {post(client, "answer", body).json()["number"] for _ in range(3)}
    assert len(numbers) == 1
    for other in ({"pair": [2, 3]}, {"answer": "different"}, {"who": "Bob"}):
        reply = post(client, "answer", body | other)
        assert (reply.status_code, "belongs to row 1" in reply.json()["error"]) == (400, True)
    assert post(client, "undo", {"who": "Ada", "key": "k"}).status_code == 400
    assert [row.answer for row in session.store.log()] == ["same"]
    assert post(client, "undo", {"who": "Ada", "key": "u"}).json()["undone"] == "same"
    assert post(client, "undo", {"who": "Bob", "key": "u"}).status_code == 400
    assert post(client, "answer", body | {"key": "u"}).status_code == 400


def test_a_pair_that_was_never_asked_may_be_answered(client, session):
    asked = client.get("/api/questions", params={"who": "Ada", "n": 20}).json()
    pair = next([i, j] for i in range(12) for j in range(i) if [j, i] not in [each["pair"] for each in asked])
    assert post(client, "answer", {"who": "Ada", "pair": pair, "answer": "same"}).status_code == 200
    assert session.pairs.must_link.tolist() == [sorted(pair)]


def test_too_many_people_are_refused_before_anything_is_written(client, session, monkeypatch):
    monkeypatch.setattr("pairmargin.web.asking.MOST_PEOPLE", 3)
    for k in range(5):
        reply = post(client, "answer", {"who": f"p{k}", "pair": [0, 1], "answer": "same"})
        assert reply.status_code == (200 if k < 3 else 400)
    assert client.get("/api/questions", params={"who": "p4"}).status_code == 400
    assert len(session.store.log()) == 3


def test_many_undo_at_once(client, session):
    for j in range(1, 9):
        session.answer("same", (0, j), who="Ada")

    def undo(k):
        return post(client, "undo", {"who": "Ada", "key": f"u{k % 6}"}).json()["undone"]

    with ThreadPoolExecutor(8) as pool:
        undone = list(pool.map(undo, range(12)))  # each of six twice
    assert undone == ["same"] * 12
    assert len(session.store.current()) == session.progress.answers == 2


def test_what_is_said_of_clusters_holds_for_their_items_whatever_was_learned_meanwhile(client, session):
    shelves = client.get("/api/clusters").json()
    one, other = (shelf["sure"][0]["row"] for shelf in shelves)
    kept = session.clustering
    session.clustering = replace(kept, cluster=1 - kept.cluster, chances=kept.chances[:, ::-1])  # other numbers
    assert post(client, "rename", {"like": one, "name": "dark"}).status_code == 200
    assert session.names == {1 - shelves[0]["cluster"]: "dark"}
    post(client, "move", {"row": shelves[0]["sure"][-1]["row"], "like": other})
    assert session.pairs.must_link.tolist() == [sorted((shelves[0]["sure"][-1]["row"], other))]
    post(client, "merge", {"one": one, "other": other})
    assert sorted((one, other)) in session.pairs.must_link.tolist()
    session.clustering = replace(kept, cluster=np.zeros_like(kept.cluster))  # they are one already
    said = session.store.log()
    assert post(client, "merge", {"one": one, "other": other}).status_code == 200
    assert post(client, "move", {"row": one, "like": other}).status_code == 200
    assert session.store.log() == said
    assert post(client, "split", {"cluster": 0, "pair": [3, 5]}).status_code == 200
    assert [3, 5] in session.pairs.cannot_link.tolist()  # what the person saw


def test_pictures_that_are_kept_ready_are_bounded(session, folder, monkeypatch):
    faces = Faces(session.items, folder)
    sizes = [len(faces.picture(row, "small")[0]) for row in range(12)]
    monkeypatch.setattr("pairmargin.web.faces.CACHED", sum(sizes[:3]))
    faces = Faces(session.items, folder)
    for row in [*range(12), 0, 0]:
        faces.picture(row, "small")
    kept = sum(len(content) for content, _ in faces._ready.values())
    assert kept == faces._size <= sum(sizes[:3])
    assert next(reversed(faces._ready)) == (0, "small")


def test_the_words_are_there_in_both_languages():
    english, german = re.split(r"\n  de: \{", (STATIC / "words.js").read_text().partition("\n};")[0])
    names = [set(re.findall(r"[ {]([a-zA-Z]+): \"", part)) for part in (english, german)]
    assert names[0] == names[1]
    used = {name for path in STATIC.glob("*.js") for name in re.findall(r"word\(\"(\w+)\"", path.read_text())}
    used |= set(re.findall(r"data-word=\"(\w+)\"", (STATIC / "index.html").read_text()))
    assert used <= names[0]


def test_the_page_is_in_the_wheel():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert "web/static/*" in project["tool"]["setuptools"]["package-data"]["pairmargin"]


def test_what_is_sent_again_because_its_reply_was_lost_counts_once(client, session):
    post(client, "number", {"clusters": 4})
    shelves = client.get("/api/clusters").json()
    for body in (
        ("merge", {"one": shelves[0]["sure"][0]["row"], "other": shelves[1]["sure"][0]["row"], "key": "m"}),
        ("split", {"cluster": 0, "key": "s"}),
        ("move", {"row": shelves[0]["sure"][-1]["row"], "like": shelves[1]["sure"][0]["row"], "key": "v"}),
        ("change", {"pair": [2, 7], "answer": "deleted", "key": "c"}),
    ):
        assert post(client, *body).status_code == 200
        known, n = len(session.store.log()), session.n_clusters
        assert post(client, *body).status_code == 200
        assert (len(session.store.log()), session.n_clusters) == (known, n)


def test_other_data_have_other_addresses_of_pictures(client, session):
    other = LabelingSession(np.asarray(session.X) + 1, 2)
    assert client.get("/api/state").json()["data"] == session.mark != other.mark
    assert "?v=${data}" in (STATIC / "faces.js").read_text()
