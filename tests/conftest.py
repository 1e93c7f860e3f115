"""What all tests share."""

from collections.abc import Iterator

import pytest

from pairmargin.threads import threads_for


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Waking a second thread costs more than all the arithmetic on such small tensors."""
    with threads_for(1):
        yield
