"""Tests of what a fork of a warm interpreter makes anew."""

import random
import tempfile

import numpy as np
import pytest
import torch

from container_runtime.warm.interpreter_start import renew_standard_library
from smdebug import forked_start


def draw() -> list[float]:
    return [random.random(), np.random.rand(), torch.rand(1).item()]


def test_no_generator_draws_what_another_fork_draws(plain_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())
    drawn = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        renew_standard_library()
        forked_start.main()
        drawn.append(draw())
    assert all(first != second for first, second in zip(*drawn, strict=True)), drawn
