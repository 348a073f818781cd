"""The Docker back end in a test."""

from pathlib import Path

from container_runtime.runtime import ContainerRuntime


def make_docker_runtime(folder: Path, instance: str) -> ContainerRuntime:
    from container_runtime.docker.engine import DockerEngine

    return DockerEngine(instance, sidecars=folder / "sidecars")
