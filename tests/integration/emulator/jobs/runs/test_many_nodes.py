"""Tests of many simulated nodes, in a short run.

``python -m tests.soak.many_nodes`` is the long one.
"""

from pathlib import Path

import pytest

from tests.soak.many_nodes import simulate


@pytest.mark.slow
def test_each_job_gets_its_turn_and_has_one_right_end_whatever_nodes_are_lost(tmp_path: Path) -> None:
    """Nobody is let in before who came earlier, no place is given away twice, no container runs twice or is left."""
    report = simulate(nodes=12, jobs=36, seed=1, folder=tmp_path, compression=1200.0, at_once=40)
    assert report["wrong"] == []
    assert sum(report["ends"].values()) == 36
    assert report["ends"].keys() == {"Completed", "Failed", "Stopped"}
    assert report["lost"] > 0, "a node that is lost takes its containers with it"
    assert report["most_places_taken"] == 12
