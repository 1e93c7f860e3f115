"""Pictures in scikit-learn's manner: a Display keeps what is drawn as plain values, and `plot` draws it into any axes.

matplotlib is imported when something is drawn, and its settings are the user's: nothing here changes them.
"""

from .cluster_map import ClusterMapDisplay
from .constraint_graph import ConstraintGraphDisplay
from .learning_curve import LearningCurveDisplay
from .objective import ObjectiveDisplay
from .pair_roc import PairRocDisplay

__all__ = [
    "ClusterMapDisplay",
    "ConstraintGraphDisplay",
    "LearningCurveDisplay",
    "ObjectiveDisplay",
    "PairRocDisplay",
]
