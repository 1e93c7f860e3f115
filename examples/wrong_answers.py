"""People err: 15 of 300 answers about digits are wrong. Which? Those that contradict the others are worth a look."""

import numpy as np
from sklearn.datasets import load_digits

from pairmargin import MaxMarginClustering, Pairs, clustering_accuracy, sample_pairs

X, digits = load_digits(n_class=6, return_X_y=True)
right = sample_pairs(digits, 300, random_state=0)

# Turn every twentieth answer around, without telling anybody.
wrong = np.arange(len(right)) % 20 == 7
answers = Pairs(right.index, right.same ^ wrong)

# Wrong answers may contradict others outright; "keep" leaves it to the margins to make the best of them.
model = MaxMarginClustering(n_clusters=6, on_conflict="keep", random_state=0).fit(X, pairs=answers)
print(f"seems wrong: {model.error_rate_:.0%} of the answers, in truth {wrong.mean():.0%}")
print(f"accuracy in spite of them: {clustering_accuracy(digits, model.labels_):.3f}")

# Those first that the networks, which had not seen them, believe the least.
suspects = model.suspicious_pairs_[:20]
for number in suspects[:5]:
    (a, b), same = answers.index[number], answers.same[number]
    print(f"rows {a} and {b}: “{'same' if same else 'different'}”, trusted to {model.answer_trust_[number]:.2f}")
print(f"{wrong[suspects].sum()} of {wrong.sum()} wrong answers are among the first {len(suspects)}")

# Look at them again, correct them, and go on.
corrected = Pairs(answers.index, answers.same ^ (wrong & np.isin(np.arange(len(answers)), suspects)))
model.set_params(warm_start=True).fit(X, pairs=corrected)
print(f"accuracy after a second look at {len(suspects)}: {clustering_accuracy(digits, model.labels_):.3f}")
