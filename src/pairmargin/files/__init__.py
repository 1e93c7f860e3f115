"""From files to files: fit, predict and evaluate as the command does them, without a word about the command line.

`fitting` reads a file and answers and learns; `outputs` writes what came out. `labels` are the clusters of items as
they stand in files, `predicting` writes those of new files, and `evaluating` holds a model against held-out answers.
`changed` notices a file that is no longer what the model was fitted on.
"""

from .evaluating import Evaluation, evaluate_files
from .fitting import FitResult, fit_files
from .outputs import write_result
from .predicting import predict_file

__all__ = ["Evaluation", "FitResult", "evaluate_files", "fit_files", "predict_file", "write_result"]
