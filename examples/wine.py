"""Wines from three growers: cluster them from 60 answers, hold some back to judge, add more, save the model."""

from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_wine

from pairmargin import MaxMarginClustering, clustering_accuracy, load, pair_roc, sample_pairs, save

X, growers = load_wine(return_X_y=True)

# In life a person answers; here the true growers do.
answers, held_out = sample_pairs(growers, 160, random_state=0).split(100, random_state=0)

model = MaxMarginClustering(n_clusters=3, warm_start=True, random_state=0).fit(X, pairs=answers)
print(f"{len(answers)} answers: AUC {pair_roc(held_out, model.pair_score(X, held_out)).auc:.3f} on held-out pairs")
print(f"accuracy {clustering_accuracy(growers, model.labels_):.3f}")

more = sample_pairs(growers, 60, random_state=1)
model.fit(X, pairs=answers + more)  # goes on from where it was
print(f"{len(answers + more)} answers: accuracy {clustering_accuracy(growers, model.labels_):.3f}")

with TemporaryDirectory() as folder:
    save(model, Path(folder) / "wine.safetensors")
    again = load(Path(folder) / "wine.safetensors")
print("the loaded model agrees:", bool((again.predict(X) == model.labels_).all()))
