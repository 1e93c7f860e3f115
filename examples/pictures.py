"""A folder of pictures, 100 answers about their names: sort the files into a folder for each cluster."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from pairmargin import MaxMarginClustering, clustering_accuracy, read_items, read_pairs, sample_pairs

pixels, digits = load_digits(n_class=6, return_X_y=True)
names = [f"scan-{number:04}.png" for number in range(len(pixels))]

with TemporaryDirectory() as folder:
    scans, sorted_scans = Path(folder, "scans"), Path(folder, "sorted")
    scans.mkdir()
    for name, picture in zip(names, pixels, strict=True):
        Image.fromarray((picture.reshape(8, 8) * 15.9).astype(np.uint8)).save(scans / name)

    # Answers as somebody would write them down: two names and a word.
    drawn = sample_pairs(digits, 100, random_state=0)
    lines = ["a,b,same"]
    for (a, b), same in zip(drawn.index, drawn.same, strict=True):
        lines.append(f"{names[a]},{names[b]},{'same' if same else 'different'}")
    Path(folder, "answers.csv").write_text("\n".join(lines) + "\n")

    items = read_items(scans, size=8)
    answers = read_pairs(Path(folder, "answers.csv"), items)
    model = MaxMarginClustering(n_clusters=6, random_state=0).fit(items.features, pairs=answers)

    for name, cluster in zip(items.ids, model.labels_, strict=True):
        home = sorted_scans / f"cluster {cluster}"
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(scans / name, home)
    for home in sorted(sorted_scans.iterdir()):
        print(home.name, len(list(home.iterdir())), "pictures")

print(f"accuracy {clustering_accuracy(digits, model.labels_):.3f}")
