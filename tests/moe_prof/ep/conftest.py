"""Fixtures for tests with real ranks."""

from __future__ import annotations

import pytest

from moe_prof.kernels.build import build


@pytest.fixture(scope="session")
def built():
    """The kernels, whose minutes on a busy machine are not to come from a rank's limit."""
    return build("release")
