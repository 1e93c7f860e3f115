"""``pairmargin fit``, ``predict`` and ``evaluate``: what they print, write and refuse, and how they stop."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console
from rich.progress import Progress
from sklearn.datasets import load_iris
from typer.testing import CliRunner, Result

import pairmargin
from pairmargin import MaxMarginClustering, cli, cli_files, cli_progress, sample_pairs
from pairmargin.files import outputs

OUTPUTS = ["labels.csv", "model.safetensors", "report.html", "run.json"]
HOME = str(Path(pairmargin.__file__).parents[1])


def run(*arguments: str | Path) -> Result:
    """The command in this process; errors that are no message are raised."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def command(*arguments: str | Path, **settings) -> subprocess.Popen[str]:
    """The real command."""
    environment = os.environ | {"PYTHONPATH": HOME, "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "pairmargin", *map(str, arguments)]
    return subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **settings
    )


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_clouds(folder: Path, n_rows: int) -> tuple[Path, Path]:
    """A table of two clouds and answers about them."""
    y = np.arange(n_rows) % 2
    values = np.random.default_rng(0).normal(size=(n_rows, 4)) + 2 * y[:, None]
    data = write(folder / "clouds.csv", "a,b,c,d", *(",".join(f"{v:.4f}" for v in row) for row in values))
    pairs = sample_pairs(y, 40, random_state=0)
    rows = (f"{i},{j},{same}" for (i, j), same in zip(pairs.index, pairs.same, strict=True))
    return data, write(folder / "clouds-answers.csv", "a,b,same", *rows)


@pytest.fixture(scope="module")
def iris(tmp_path_factory) -> Path:
    """A folder with flowers, answers, held-out answers, and what `fit` made of them by the real command."""
    folder = tmp_path_factory.mktemp("iris")
    X, y = load_iris(return_X_y=True)
    rows = (f"f{k},{','.join(map(str, row))},kind {kind}" for k, (row, kind) in enumerate(zip(X, y, strict=True)))
    write(folder / "flowers.csv", "name,a,b,c,d,kind", *rows)
    for name, pairs in zip(
        ("answers", "held-out"), sample_pairs(y, 80, random_state=0).split(0.5, random_state=0), strict=True
    ):
        told = ("same" if same else "different" for same in pairs.same)
        answers = (f"f{i},f{j},{same}" for (i, j), same in zip(pairs.index, told, strict=True))
        write(folder / f"{name}.csv", "a,b,same", *answers)
    fit = command(
        *("fit", "flowers.csv", "--pairs", "answers.csv", "--clusters", "3", "--id", "name", "--truth", "kind"),
        cwd=folder,
    )
    out, error = fit.communicate(timeout=300)
    assert (fit.returncode, error) == (0, "")
    (folder / "said").write_text(out)
    return folder


@pytest.fixture
def model(iris) -> Path:
    return iris / "flowers-clusters" / "model.safetensors"


@pytest.fixture
def quick(monkeypatch) -> None:
    """Fits that are over at once."""
    for name, value in {"pretrain_epochs": 2, "max_iter": 10, "n_init": 1}.items():
        monkeypatch.setitem(MaxMarginClustering.__init__.__kwdefaults__, name, value)


# What is printed and written


def test_fit_says_what_it_read_learned_and_wrote(iris):
    lines = (iris / "said").read_text().splitlines()
    assert lines[0] == "150 items with 4 features from flowers.csv"
    assert "40 answers, 20 same and 20 different" in lines
    assert any(line.startswith("3 clusters of ") for line in lines)
    assert any(line.startswith("accuracy 0.") for line in lines)
    assert lines[-1] == "Everything is in flowers-clusters"
    assert sorted(path.name for path in (iris / "flowers-clusters").iterdir()) == OUTPUTS
    assert sorted(path.name for path in iris.iterdir() if path.name.startswith(".")) == []


def test_predict_and_evaluate_by_the_real_command(iris, model, tmp_path):
    predict = command("predict", model, iris / "flowers.csv", "--out", tmp_path / "new.csv")
    assert predict.communicate(timeout=300) == (f"150 items, written to {tmp_path / 'new.csv'}\n", "")
    assert predict.returncode == 0
    ids, cluster = zip(*(line.split(",")[:2] for line in (tmp_path / "new.csv").read_text().splitlines()), strict=True)
    assert ids[:2] == ("id", "f0")
    assert set(cluster[1:]) == {"0", "1", "2"}
    evaluate = command("evaluate", model, iris / "flowers.csv", "--pairs", iris / "held-out.csv", "--json")
    out, error = evaluate.communicate(timeout=300)
    assert (evaluate.returncode, error, out.count("\n")) == (0, "", 1)
    assert json.loads(out)["agreement"] > 0.8


def test_evaluate_prints_a_table(iris, model):
    result = run("evaluate", model, iris / "flowers.csv", "--pairs", iris / "held-out.csv", "--truth", "kind")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "40 answers about 150 items"
    for start in ("agreement ", "ROC AUC ", "calibration error ", "Brier score ", "accuracy "):
        assert sum(line.startswith(start) for line in lines) == 1
    assert any("0.9 to 1.0" in line for line in lines)


@pytest.mark.usefixtures("quick")
def test_json_is_one_object_and_progress_is_lines_of_json(iris, tmp_path):
    out = tmp_path / "out"
    result = run("fit", iris / "flowers.csv", "--pairs", iris / "answers.csv", "--clusters", "3", "--id", "name",
                 "--out", out, "--json", "--seed", "7")  # fmt: skip
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["out"] == str(out)
    assert told["seed"] == 7
    assert {key: told[key] for key in told if key != "out"} == json.loads((out / "run.json").read_text()) | {
        "date": told["date"]
    }
    rows = [json.loads(line) for line in result.stderr.splitlines()]
    assert list(dict.fromkeys(row["phase"] for row in rows)) == ["read", "pretrain", "judge", "train", "label"]
    assert [row["iteration"] for row in rows if row["phase"] == "train"] == [0, 10]
    assert all({"objective", "seconds"} <= set(row) for row in rows if row["phase"] == "train")


@pytest.mark.usefixtures("quick")
def test_same_seed_same_labels_and_auto(iris, tmp_path):
    texts = []
    for name in ("one", "two"):
        result = run("fit", iris / "flowers.csv", "--pairs", iris / "answers.csv", "--clusters", "auto",
                     "--exclude", "kind", "--exclude", "name", "--out", tmp_path / name)  # fmt: skip
        assert result.exit_code == 2  # ids in the answers, but rows are numbered
        result = run("fit", iris / "flowers.csv", "--pairs", iris / "answers.csv", "--clusters", "auto",
                     "--exclude", "kind", "--id", "name", "--out", tmp_path / name)  # fmt: skip
        assert result.exit_code == 0
        texts.append((tmp_path / name / "labels.csv").read_text())
    assert texts[0] == texts[1]


@pytest.mark.usefixtures("quick")
def test_a_sample_is_told(tmp_path):
    data, answers = write_clouds(tmp_path, 300)
    result = run("fit", data, "--pairs", answers, "--clusters", "2", "--sample", "100", "--out", tmp_path / "out")
    assert "  learned from 100 items; --sample 0 learns from all, in more time" in result.stdout.splitlines()
    assert json.loads((tmp_path / "out" / "run.json").read_text())["learned_from"] == 100
    assert len((tmp_path / "out" / "labels.csv").read_text().splitlines()) == 301


@pytest.mark.usefixtures("quick")
def test_warnings_are_lines(tmp_path):
    data = write(tmp_path / "few.csv", "a,b", *["1,2", "3,4"] * 5)
    answers = write(tmp_path / "answers.csv", "a,b,same", "0,1,no")
    result = run("fit", data, "--pairs", answers, "--clusters", "3", "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: ")
    assert result.stderr.count("\n") == 1
    told = run("fit", data, "--pairs", answers, "--clusters", "3", "--out", tmp_path / "out", "--json").stderr
    assert [json.loads(line).get("warning") for line in told.splitlines()][-1] == result.stderr[9:-1]


def test_warnings_are_told_before_an_error_that_they_explain(iris, model, tmp_path):
    fewer = (iris / "flowers.csv").read_text(encoding="utf-8").splitlines()[:10]
    changed = write(tmp_path / "flowers.csv", *fewer)
    result = run("evaluate", model, changed, "--pairs", iris / "held-out.csv")
    warning, error = result.stderr.splitlines()
    assert warning.startswith("Warning: flowers.csv has changed since the model was fitted on it")
    assert error.startswith("Error: ")
    assert result.exit_code == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.usefixtures("quick")
def test_names_of_files_and_columns_cannot_steer_the_terminal(tmp_path):
    data, answers = write_clouds(tmp_path, 40)
    lines = data.read_text().splitlines()
    lines = [lines[0] + ",w\x1b]0;title\x07", *(f"{line},{k} words" for k, line in enumerate(lines[1:]))]
    odd = write(tmp_path / "da\x1b[2Jta.csv", *lines)
    good = run("fit", odd, "--pairs", answers, "--clusters", "2", "--out", tmp_path / "o\x9but")
    bad = run("fit", odd, "--pairs", write(tmp_path / "b\x1bad.csv", "a,b"), "--clusters", "2")
    assert (good.exit_code, bad.exit_code) == (0, 2)
    for mark in ("da\ufffd[2Jta.csv", "w\ufffd]0;title\ufffd", "o\ufffdut"):
        assert mark in good.stdout
    assert "b\ufffdad.csv has no column same" in bad.stderr
    assert not set("\x07\x1b\x9b") & set(good.output + bad.output)


def test_a_name_that_is_not_utf_8_is_told_all_the_same():
    assert cli_files._plain("caf\udce9\r.txt\tx\n") == "caf\ufffd\ufffd.txt\tx\n"


def test_help_of_the_commands_names_their_options():
    for name, options in {
        "fit": ("--pairs", "--clusters", "--id", "--text", "--columns", "--exclude", "--truth", "--seed", "--out"),
        "predict": ("MODEL", "DATA", "--out"),
        "evaluate": ("MODEL", "DATA", "--pairs", "--truth"),
    }.items():
        assert all(option in run(name, "--help").stdout for option in (*options, "--json"))


# What is refused


ANSWERS = "a,b,same", "f1,f2,yes"
BAD = {  # the lines of the data and of the answers, options, and what the message says
    "separator": (["name;a", "f1;1", "f2;2"], ANSWERS, ["--separator", ","], "pass separator=';'"),
    "ragged": (["name,a", "f1,1", "f2,2,3"], ANSWERS, [], "line 3 of data.csv has 3 values, but there are 2 columns"),
    "empty": ([""], ANSWERS, [], "data.csv is empty"),
    "no rows": (["name,a"], ANSWERS, [], "data.csv has column names but no rows"),
    "only text": (["name,a", *(f"f{k},word {k}" for k in range(50))], ANSWERS, [], "data.csv"),
    "twice": (["name,a", "f1,1", "f2,5", "f1,3"], ANSWERS, [], "line 2 of data.csv and line 4 of data.csv"),
    "unknown id": (["name,a", "f1,1", "f22,2"], ANSWERS, [], "line 2 of answers.csv: 'f2' is not the id of an item"),
    "nearest id": (["name,a", "f1,1", "f22,2"], ANSWERS, [], "did you mean 'f22'?"),
    "no column": (["name,a", "f1,1", "f2,2"], ANSWERS, ["--exclude", "b"], "exclude: there is no column 'b'"),
    "no answer": (["name,a", "f1,1", "f2,2"], ["a,b", "f1,f2"], [], "answers.csv"),
    "half an answer": (["name,a", "f1,1", "f2,2"], ["a,b,same", "f1,f2,perhaps"], [], "line 2 of answers.csv"),
    "clusters": (["name,a", "f1,1", "f2,2"], ANSWERS, ["--clusters", "two"], "--clusters two should be a whole number"),
    "no clusters": (["name,a", "f1,1", "f2,2"], ANSWERS, ["--clusters", "0"], "n_clusters=0"),
    "option": (["name,a", "f1,1", "f2,2"], ANSWERS, ["--size", "8"], "size= means nothing for data.csv"),
}


def refused(result: Result, message: str) -> None:
    """One line on stderr with the message, and exit code 2."""
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert (result.exit_code, result.stderr.count("\n"), result.stdout) == (2, 1, "")


def test_errors_are_json_where_all_is(tmp_path):
    missing = tmp_path / "none.csv"
    result = run("fit", missing, "--pairs", missing, "--clusters", "3", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    told = json.loads(result.stderr.splitlines()[-1])  # after the phases that were begun
    assert told["exit_code"] == 2
    assert str(missing) in told["error"]


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_in_a_line(case, tmp_path):
    data, answers, options, message = BAD[case]
    write(tmp_path / "data.csv", *data)
    write(tmp_path / "answers.csv", *answers)
    result = run("fit", tmp_path / "data.csv", "--pairs", tmp_path / "answers.csv", "--clusters", "2", "--id", "name",
                 "--out", tmp_path / "out", *options)  # fmt: skip
    refused(result, message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "data.csv"]


@pytest.mark.usefixtures("quick")
def test_answers_that_contradict_each_other_are_named_by_their_lines(tmp_path):
    data, _ = write_clouds(tmp_path, 100)
    answers = write(tmp_path / "odd.csv", "a,b,same", "1,3,yes", "3,5,yes", "1,5,no", "0,1,no")
    arguments = "fit", data, "--pairs", answers, "--clusters", "2", "--sample", "50", "--out", tmp_path / "out"
    refused(run(*arguments), 'line 4 of odd.csv: (1, 5) is "different" but line 2 of odd.csv')
    assert run(*arguments, "--on-conflict", "drop").exit_code == 0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_vectors_and_sparse_vectors(ending, tmp_path):
    data, answers = write_clouds(tmp_path, 200)
    vectors = np.loadtxt(data, delimiter=",", skiprows=1)
    path = tmp_path / f"vectors.{ending}"
    if ending == "npy":
        np.save(path, vectors)
    else:
        sp.save_npz(path, sp.csr_array(vectors))
    out = tmp_path / "out"
    assert run("fit", path, "--pairs", answers, "--clusters", "2", "--sample", "150", "--out", out).exit_code == 0
    assert run("predict", out / "model.safetensors", path, "--out", tmp_path / "new.csv").exit_code == 0
    clusters = np.loadtxt(out / "labels.csv", delimiter=",", skiprows=1, dtype=str)[:, 1].astype(int)
    assert max(np.mean(clusters == np.arange(200) % 2), np.mean(clusters != np.arange(200) % 2)) > 0.9
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 201


@pytest.mark.usefixtures("quick")
def test_texts_of_a_folder(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for k in range(6):
        write(folder / f"cat{k}.txt", f"the cat sat on the mat with dog {k} and cat")
        write(folder / f"stock{k}.txt", f"stock market prices fell on trading {k} market")
    answers = write(tmp_path / "answers.csv", "a,b,same", "cat0.txt,cat1.txt,same", "cat0.txt,stock0.txt,different")
    out = tmp_path / "out"
    assert run("fit", folder, "--pairs", answers, "--clusters", "2", "--out", out).exit_code == 0
    rows = [line.split(",")[:2] for line in (out / "labels.csv").read_text().splitlines()[1:]]
    assert len({(name[:3], cluster) for name, cluster in rows}) == 2


def test_wrong_encoding(tmp_path):
    (tmp_path / "data.csv").write_bytes("name,a\nf1,1\nné,2\n".encode("latin-1"))
    answers = write(tmp_path / "answers.csv", *ANSWERS)
    arguments = "fit", tmp_path / "data.csv", "--pairs", answers, "--clusters", "2", "--id", "name"
    refused(run(*arguments, "--out", tmp_path / "out"), "on line 3, does not fit; pass its encoding")


def test_no_such_files(iris, model, tmp_path):
    for arguments in (
        ("fit", tmp_path / "flower.csv", "--pairs", iris / "answers.csv", "--clusters", "3", "--out", tmp_path / "out"),
        ("predict", model, tmp_path / "flower.csv", "--out", tmp_path / "new.csv"),
        ("evaluate", model, tmp_path / "flower.csv", "--pairs", iris / "answers.csv"),
        ("evaluate", tmp_path / "flower.csv", iris / "flowers.csv", "--pairs", iris / "answers.csv"),
    ):
        refused(run(*arguments), "flower.csv")
    assert list(tmp_path.iterdir()) == []


def test_an_image_that_is_none_is_skipped_and_named(tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos"
    folder.mkdir()
    write(folder / "bad.png", "no image")
    answers = write(tmp_path / "answers.csv", "a,b,same", "0.png,1.png,no")
    arguments = "fit", folder, "--pairs", answers, "--clusters", "2", "--out", tmp_path / "out"
    refused(run(*arguments), "no image of the folder photos can be read; for one, bad.png (not an image)")
    for k in range(6):
        image.new("L", (8, 8), 200 * (k % 2) + 5 * k).save(folder / f"{k}.png")
    result = run(*arguments)
    assert result.exit_code == 0
    assert "  1 image skipped: bad.png (not an image)." in result.stdout.splitlines()
    assert len((tmp_path / "out" / "labels.csv").read_text().splitlines()) == 7


def test_a_column_that_is_missing_at_predict(iris, model, tmp_path):
    data = write(tmp_path / "new.csv", "name,a,b,c", "f1,1,2,3")
    refused(run("predict", model, data, "--out", tmp_path / "labels.csv"), "new.csv has no column 'd'")
    assert not (tmp_path / "labels.csv").exists()


def test_a_model_that_is_none(iris, tmp_path):
    text = write(tmp_path / "model.safetensors", "no model")
    for arguments in (("predict", "--out", tmp_path / "new.csv"), ("evaluate", "--pairs", iris / "held-out.csv")):
        refused(run(arguments[0], text, iris / "flowers.csv", *arguments[1:]), "model.safetensors is damaged")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_no_permission_to_write_is_told_before_the_work(number, iris, model, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("pairmargin.files.fitting.read_items", lambda *_, **__: pytest.fail("the work was begun"))
    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(Path, "touch", refuse)
    out, reason = tmp_path / "out", os.strerror(number).lower()
    fit = "fit", iris / "flowers.csv", "--pairs", iris / "answers.csv", "--clusters", "3", "--out", out
    refused(run(*fit), f"{out} cannot be written: {reason}; choose another place")
    refused(run("predict", model, iris / "flowers.csv", "--out", out), f"{out} cannot be written: {reason}")


@pytest.mark.usefixtures("quick")
def test_a_full_disk_leaves_nothing_half_written(iris, model, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    fit = "fit", iris / "flowers.csv", "--pairs", iris / "answers.csv", "--clusters", "3", "--id", "name", "--out"
    assert run(*fit, tmp_path / "there").exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "there").iterdir()}
    monkeypatch.setattr(outputs, "write_rows", full)
    monkeypatch.setattr("pairmargin.files.predicting.write_rows", full)
    for folder in ("there", "new"):
        refused(run(*fit, tmp_path / folder), f"{tmp_path / folder} cannot be written: no space left on device")
    refused(run("predict", model, iris / "flowers.csv", "--out", tmp_path / "new.csv"), "no space left on device")
    monkeypatch.undo()
    monkeypatch.setattr(Path, "write_bytes", full)  # the model
    message = f"Error: {tmp_path / 'new'} cannot be written: no space left on device; choose another place\n"
    assert run(*fit, tmp_path / "new").stderr == message
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert {path: path.read_bytes() for path in (tmp_path / "there").iterdir()} == before


def test_nothing_is_written_over_what_is_read(iris, tmp_path):
    data = write(tmp_path / "labels.csv", "a,b", "1,2")
    refused(run("fit", data, "--pairs", iris / "answers.csv", "--clusters", "3", "--out", tmp_path), "file to read")


# Ctrl-C


@pytest.fixture
def interrupted(monkeypatch):
    """A fit in which Ctrl-C is pressed at certain rows."""

    def press_at(is_time):
        draw = cli_progress._print_json

        def pressing(row):
            draw(row)
            if is_time(row):
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(cli_progress, "_print_json", pressing)

    return press_at


@pytest.mark.parametrize(("phase", "iteration"), [("train", 10), ("judge", 10)])
def test_ctrl_c_keeps_the_model_so_far(phase, iteration, iris, tmp_path, interrupted):
    interrupted(lambda row: (row["phase"], row.get("iteration")) == (phase, iteration))
    before = signal.getsignal(signal.SIGINT)
    result = run("fit", iris / "flowers.csv", "--pairs", iris / "answers.csv", "--clusters", "3", "--id", "name",
                 "--truth", "kind", "--out", tmp_path / "out", "--json")  # fmt: skip
    assert result.exit_code == 130
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["stopped"] is True
    assert told["iterations"] == (iteration if phase == "train" else 0)
    assert told["scores"]["accuracy"] > 0.6
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == OUTPUTS
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("phase", ["pretrain", "judge"])
def test_ctrl_c_before_there_is_a_model_or_twice_leaves_nothing(phase, iris, tmp_path, interrupted):
    interrupted(lambda row: row["phase"] == phase)  # at every row of it
    result = run("fit", iris / "flowers.csv", "--pairs", iris / "answers.csv", "--clusters", "3", "--id", "name",
                 "--out", tmp_path / "out", "--json")  # fmt: skip
    assert result.exit_code == 130
    assert result.stderr.endswith("Stopped.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_by_the_real_command(tmp_path):
    data, answers = write_clouds(tmp_path, 3000)
    fit = command("fit", data, "--pairs", answers, "--clusters", "2", "--out", tmp_path / "out", "--json")
    for line in fit.stderr:
        if json.loads(line)["phase"] == "train":
            break
    fit.send_signal(signal.SIGINT)
    out, _ = fit.communicate(timeout=300)
    assert fit.returncode == 130
    assert json.loads(out)["stopped"] is True
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == OUTPUTS


# Bars


ROWS = [
    {"phase": "read"},
    {"phase": "pretrain", "layer": 1, "epoch": 1, "reconstruction_error": 0.5},
    {"phase": "pretrain", "layer": 1, "epoch": 2, "reconstruction_error": 0.25},
    {"phase": "judge", "iteration": 0, "objective": 0.75},
    {"phase": "train", "iteration": 0, "objective": 0.5},
    {"phase": "train", "iteration": 1, "objective": 0.4},
    {"phase": "label"},
]


def test_bars_follow_the_phases():
    bars = Progress(disable=True)
    draw = cli_progress._Drawer(bars, cli_progress._steps(MaxMarginClustering(3, pretrain_epochs=2, max_iter=30)))
    shown = []
    for row in ROWS:
        draw(row)
        (task,) = bars.tasks
        shown.append((task.description, task.completed, task.total, task.fields["status"]))
    assert shown == [
        ("Reading", 0, None, ""),
        ("Learning features", 1, 2, "error 0.5000"),
        ("Finding a start", 0, None, ""),
        ("Judging answers", 1, 93, "objective 0.7500"),
        ("Training", 1, 31, "objective 0.5000"),
        ("Training", 2, 31, "objective 0.4000"),
        ("Labelling", 0, None, ""),
    ]


def test_a_bar_does_not_pass_its_end_when_starts_are_trained_to_the_end():
    bars = Progress(disable=True)
    draw = cli_progress._Drawer(bars, cli_progress._steps(MaxMarginClustering(3, n_init=2, max_iter=30)))
    ends = []
    for _ in range(52 + 31 + 1):  # 25 iterations and the first row of each, one of them to the end, and then the other
        draw({"phase": "screen", "iteration": 0, "objective": 0.5})
        (task,) = bars.tasks
        assert task.completed <= task.total
        ends.append(task.fields["steps"])
    assert [ends[51], ends[52], ends[82], ends[83]] == ["52/52", "53/83", "83/83", "84/114"]
    draw({"phase": "judge", "iteration": 0, "objective": 0.5})
    draw({"phase": "screen", "iteration": 0, "objective": 0.5})
    assert bars.tasks[0].total == 52


def test_bars_are_drawn_on_a_terminal_alone():
    for is_terminal in (True, False):
        screen = StringIO()
        console = Console(file=screen, force_terminal=is_terminal, width=100, _environ={})
        with cli_progress.progress(MaxMarginClustering(3), console, as_json=False) as on_row:
            assert [on_row(row) for row in ROWS] == [False] * len(ROWS)
        assert ("Labelling" in screen.getvalue()) == is_terminal
        assert is_terminal or not screen.getvalue()
