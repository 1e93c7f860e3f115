"""What all tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from pairmargin.threads import threads_for

# The same examples everywhere, and no clock: a busy machine is no error.
settings.register_profile("ours", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Waking a second thread costs more than all the arithmetic on such small tensors."""
    with threads_for(1):
        yield
