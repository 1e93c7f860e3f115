"""A table of measurements in pandas: which settings? Let held-out answers judge, then fit on all of them."""

import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV

from pairmargin import MaxMarginClustering, PairClassifier, PairSplit, clustering_accuracy, sample_pairs

# Thirty measures of cell nuclei. A frame of numbers goes straight in; row numbers are positions.
cells, diagnosis = load_breast_cancer(return_X_y=True, as_frame=True)

# In life a pathologist answers; here the known diagnoses do, 60 times.
answers = sample_pairs(diagnosis, 60, random_state=0)

# The samples of this classifier are answers, not rows, so that a search holds out answers and all rows stay in place.
# `n_init=1` and `robust=False` are for speed, while searching.
quick = MaxMarginClustering(n_clusters=2, n_init=1, robust=False, random_state=0)
search = GridSearchCV(
    PairClassifier(quick, cells),
    {"estimator__hidden_layer_sizes": [(), (50,)]},
    cv=PairSplit(2, random_state=0),
    scoring="roc_auc",
)
search.fit(answers.index, answers.same)

scores = pd.DataFrame(search.cv_results_)[["params", "mean_test_score", "std_test_score"]]
print(scores.round(3).to_string(index=False))

# The winner once more, with all that the default does, on all answers.
best = search.best_params_["estimator__hidden_layer_sizes"]
model = MaxMarginClustering(n_clusters=2, hidden_layer_sizes=best, random_state=0).fit(cells, pairs=answers)
print(f"accuracy {clustering_accuracy(diagnosis, model.labels_):.3f}")

# What sets the two clusters apart, in standard deviations.
means = ((cells - cells.mean()) / cells.std()).groupby(model.labels_).mean()
apart = (means.loc[0] - means.loc[1]).abs().sort_values(ascending=False)
print("apart in:", ", ".join(apart.index[:3]))
