"""ClustPy: clusters by an autoencoder, with its default settings. None of them listens to answers.

It imports torchvision for pictures, of which there are none here, and torchvision's wheel refuses the torch that is
built for processors alone. So torchvision is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import torch._dynamo  # or the first step of Adam would import it, with the clock running
from worker import Array, Task, serve


class LeftOut(ModuleType):
    """A module whose every name is an empty class."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for part in ("", ".datasets", ".models", ".models._api", ".transforms"):
    sys.modules[f"torchvision{part}"] = LeftOut(f"torchvision{part}")

from clustpy import deep  # type: ignore[import-not-found]  # noqa: E402


def clusterer(name: str) -> Callable[[Task], Array]:
    """One of its classes, as it comes."""

    def cluster(task: Task) -> Array:
        torch.manual_seed(task.seed)
        model = getattr(deep, name)(task.n_clusters, random_state=task.seed)
        labels: Array = model.fit(task.X.astype("float32")).labels_
        return labels

    return cluster


if __name__ == "__main__":
    serve("clustpy", {f"clustpy-{name.lower()}": clusterer(name) for name in ("DEC", "IDEC", "DCN")})
