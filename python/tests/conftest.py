"""Settings of all tests: one thread, the tree's package, a command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
if os.environ.get("PARSIMONY_TEST_INSTALLED") != "1":
    sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

torch.set_num_threads(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than a few seconds; run with -m slow")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the source tree."""
    return HERE.parent.parent
