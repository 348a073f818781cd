"""Fixtures of the contract suite: the back end under test."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from container_runtime.back_ends import RuntimeOptions, Traits, list_back_ends, load_back_end
from container_runtime.runtime import ContainerRuntime
from container_runtime.spec import Mount

VARIABLE = "SMDEBUG_EMULATOR_TEST_BACK_ENDS"
"""Variable that names the back ends under test, separated by commas; by default all that are installed."""


@dataclass(frozen=True, slots=True)
class Target:
    """A back end under test, and how it is opened. Whoever opens it twice sees the same containers.

    Attributes:
        name: the name of its entry point.
        options: the options to open it with.
        traits: how it differs from others.
    """

    name: str
    options: RuntimeOptions
    traits: Traits

    def open(self) -> ContainerRuntime:
        return load_back_end(self.name).open(self.options).runtime


@pytest.fixture(params=os.environ[VARIABLE].split(",") if VARIABLE in os.environ else list_back_ends())
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """The back end under test. Override it to open a back end with other options, or for other traits."""
    return Target(request.param, RuntimeOptions(tmp_path / "state"), load_back_end(request.param).traits)


@pytest.fixture
def traits(target: Target) -> Traits:
    return target.traits


@pytest.fixture
def make_runtime(target: Target) -> Iterator[Callable[[], ContainerRuntime]]:
    """Makes runtimes that see the same containers, as an emulator before and after its restart does."""
    made: list[ContainerRuntime] = []

    def make() -> ContainerRuntime:
        made.append(target.open())
        return made[-1]

    yield make
    for container in made[0].find({}) if made else ():
        made[0].remove(container.id)
    assert not made or made[0].find({}) == []
    for network in made[0].find_networks({}) if made else ():
        made[0].remove_network(network.name)
    assert not made or made[0].find_networks({}) == []
    for runtime in made:
        runtime.close()


@pytest.fixture
def runtime(make_runtime: Callable[[], ContainerRuntime]) -> ContainerRuntime:
    return make_runtime()


@pytest.fixture
def shared(tmp_path: Path) -> Mount:
    """A folder that container and test both see."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return Mount(folder, "/opt/ml")
