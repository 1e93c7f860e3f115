"""Texts: what is a function of SciPy about? Its documentation is the text, 60 answers are the guide."""

import inspect
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.stats
from sklearn.cluster import KMeans

from pairmargin import MaxMarginClustering, clustering_accuracy, read_items, sample_pairs

PARTS = [scipy.linalg, scipy.ndimage, scipy.signal, scipy.stats]

with TemporaryDirectory() as folder:
    # A text file for every function, in a folder for every part of SciPy.
    for part in PARTS:
        home = Path(folder, part.__name__)
        home.mkdir()
        for name in part.__all__:
            if inspect.isfunction(getattr(part, name)):
                text = inspect.getdoc(getattr(part, name)) or name
                (home / f"{name}.txt").write_text(text[:1500], encoding="utf-8")

    # Words become tf-idf and its main components. The folder's name is the truth: it answers, and scores the result.
    texts = read_items(folder, truth="folder")

print(len(texts.ids), "texts;", texts.notes[0])
answers = sample_pairs(texts.truth, 60, random_state=0)
model = MaxMarginClustering(n_clusters=len(PARTS), random_state=0).fit(texts.features, pairs=answers)

alone = KMeans(len(PARTS), n_init=10, random_state=0).fit_predict(texts.features)
print(f"k-means, no answers:    {clustering_accuracy(texts.truth, alone):.3f}")
print(f"pairmargin, 60 answers: {clustering_accuracy(texts.truth, model.labels_):.3f}")

# A text that nobody has seen goes the way of the others: the recipe knows the words.
with TemporaryDirectory() as folder:
    Path(folder, "new.txt").write_text(
        "Test whether two samples are from one distribution: the statistic, and the p-value of it."
    )
    new = texts.recipe.read(folder)
cluster = model.predict(new.features)[0]
print("a new text is filed with:", ", ".join(np.array(texts.ids)[model.labels_ == cluster][:3]))
