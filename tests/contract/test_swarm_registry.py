"""Tests of Swarm registries: nodes pull images, and refusals are reported.

The agents' own image is pulled, too.
"""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from container_runtime.runtime import ContainerRuntimeError, Exit
from container_runtime.spec import ContainerSpec
from container_runtime.swarm.engine import SwarmEngine
from container_runtime.swarm.survey import survey
from tests.registry import run_registry
from tests.swarm_nodes import SwarmNodes

pytestmark = [pytest.mark.docker, pytest.mark.nightly]

_RULES = "smdebug-emulator/sagemaker-debugger-rules"
_PORT = 5000


@pytest.fixture(scope="module")
def bare_worker(granted_namespaces: None) -> Iterator[SwarmNodes]:
    """A Swarm whose second node has no image at all."""
    with tempfile.TemporaryDirectory(prefix="smd-") as folder:
        nodes = SwarmNodes(Path(folder) / "swarm", in_memory=True, linked=None)
        nodes.start()
        try:
            nodes.load(f"{_RULES}:latest", onto=[nodes.manager])
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
                yield nodes
        finally:
            nodes.stop()


def test_a_registry_that_does_not_answer_is_named(bare_worker: SwarmNodes, tmp_path: Path) -> None:
    prefix = f"{bare_worker.address}:{_PORT}/team"
    with pytest.raises(ContainerRuntimeError, match=f"(?s){prefix}.*connection refused"):
        SwarmEngine("registry", tmp_path / "key", registry=prefix)
    (finding,) = survey(tmp_path / "key", prefix, start_agents=True)
    assert finding.state == "missing"
    assert prefix in finding.found


def test_a_node_without_the_agents_image_is_named_with_the_command(bare_worker: SwarmNodes, tmp_path: Path) -> None:
    findings = {each.state: each for each in survey(tmp_path / "key", None, start_agents=True)}
    assert findings.keys() == {"ok", "missing"}
    missing = findings["missing"]
    assert f"({bare_worker.nodes[1].address}) has no agent and gets no tasks: No such image" in missing.found
    assert missing.remedy.startswith("docker save sha256:")
    assert "| ssh NODE docker load" in missing.remedy


def test_nodes_pull_what_they_are_given_to_run(bare_worker: SwarmNodes, tmp_path: Path) -> None:
    nodes = bare_worker
    with run_registry(nodes.address, _PORT, tmp_path) as host:
        engine = SwarmEngine("registry", tmp_path / "key", registry=f"{host}/team")
        assert engine.count_nodes() == 2
        said: list[str] = []
        with closing(nodes.manager.connect()) as api:
            # Another image than the agents', which nobody but the manager has.
            built = api.create_container(_RULES, command=["true"])
            api.commit(built["Id"], "other", "latest", changes='ENTRYPOINT ["python", "-c"]')
            api.remove_container(built["Id"])
        engine.resolve_image("other", said.append)
        assert any(f"pushing the image to {host}/team/other" in line for line in said)
        source = "import os; print(os.path.exists('/.dockerenv'))"
        started = []
        for number in range(2):  # as large as a node: one on each
            spec = ContainerSpec(f"pulled-{number}", "other", command=(source,), cpus=2)
            started.append(engine.start(spec))
        for container in started:
            assert engine.wait(container, 60) == Exit(0)
            assert [line.text for line in engine.logs(container)] == ["True"]
            engine.remove(container)
        with closing(nodes.nodes[1].connect()) as api:
            digests = [each for image in api.images() for each in image["RepoDigests"] or ()]
        assert {each.partition("@")[0] for each in digests} == {
            f"{host}/team/other",
            f"{host}/team/sagemaker-debugger-rules",
        }
        engine.close()
