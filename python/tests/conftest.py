"""A made run of eight ranks on three nodes, and a command that reads it: tests/python.sh names them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import lapscope
import pytest


@pytest.fixture(scope="session")
def path() -> Path:
    return Path(os.environ["LAPSCOPE_TEST_RUN"])


@pytest.fixture(scope="session")
def large() -> Path:
    """A run whose parts take so long that something can happen meanwhile."""
    return Path(os.environ["LAPSCOPE_TEST_LARGE"])


@pytest.fixture(scope="session")
def run(path: Path) -> Iterator[lapscope.Run]:
    with lapscope.open(path) as run:
        yield run
