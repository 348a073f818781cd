"""Fixtures of the container tests: a local server, and the agents of a Swarm."""

import socket
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from container_runtime.spec import ContainerSpec
from container_runtime.swarm.engine import SwarmEngine
from emulator.gateway.listener import Listener
from tests.swarm_nodes import SwarmNodes

# Of one engine and of a Swarm's node alike, by the same code: `--swarm whole` runs these there, too.
AS_ON_ONE_ENGINE = {
    "test_memory_that_forked_workers_share_counts_once",
    "test_a_known_load_is_measured_as_psutil_does",
    "test_log_holds_both_streams",
    "test_log_shows_bytes_that_are_not_text",
    "test_log_keeps_the_order_of_many_lines",
    "test_log_keeps_a_long_line_whole_and_cuts_an_endless_one",
    "test_home_and_temporary_folder_can_be_written",
    "test_standard_input_is_empty",
    "test_base_folder_of_the_toolkit_is_the_mount",
    "test_mounts_are_found_at_their_targets",
    "test_a_local_process_stands_back_as_far_as_it_is_to",
    "test_isolated_hosts_reach_each_other_only",
    "test_stop_is_idempotent",
    "test_what_a_container_leaves_running_ends_with_it",
    "test_two_run_at_once",
    "test_one_container_is_waited_for_and_read_by_many",
    "test_host_of_a_network_reaches_the_servers_of_this_machine",
    "test_exit_code[swarm-0]",
    "test_exit_code[swarm-255]",
    "test_missing_entry_point_is_said_at_the_start[swarm-/no/such/program]",
}


# Where folders are carried all else is as on a Swarm whose nodes see them: `--swarm whole` runs everything there, too.
WITH_FILES = {
    "test_mount_is_read_and_written_by_both_sides[swarm-carrying]",
    "test_files_of_the_image_are_beside_a_mount[swarm-carrying]",
    "test_container_outlives_an_owner_that_is_killed[swarm-carrying]",
}


# A Swarm gives a task its address when it is made: there hosts wait for each other's names.
ELSEWHERE = "test_host_finds_the_others_before_they_run_and_after_their_end"


# On plain Docker each fact that a line of ours decides runs by day; of these, the engine or the kernel decides, or
# another test there asserts the same of other containers.
BY_NIGHT_ON_DOCKER = {
    "test_death_by_signal_counts_from_128",  # test_memory_limit
    "test_exit_code[docker-0]",
    "test_exit_code[docker-255]",
    "test_home_and_temporary_folder_can_be_written",  # test_a_container_has_folders_and_packages_of_its_own
    "test_host_of_a_network_reaches_the_servers_of_this_machine",  # test_docker_networks.py
    "test_hosts_of_two_networks_meet_their_own_on_one_port",  # test_docker_networks.py
    "test_log_keeps_a_long_line_whole_and_cuts_an_endless_one",  # unit tests of log.py
    "test_log_keeps_the_order_of_many_lines",
    "test_memory_that_forked_workers_share_counts_once",
    "test_missing_entry_point_is_said_at_the_start[docker-/no/such/program]",
    "test_a_local_process_stands_back_as_far_as_it_is_to",
    "test_one_container_is_waited_for_and_read_by_many",
    "test_two_run_at_once",  # tests of networks
    "test_what_a_container_leaves_running_ends_with_it",
}
# A core of each kind of fact runs by day where containers start another way than on plain Docker.
BY_DAY: dict[str, set[str]] = {
    # What is given away is a container that has been started before; some specs none can become, and start cold. Its
    # exit code, log, mounts and labels are in test_spares.py.
    "docker-spares": {
        "test_a_container_has_folders_and_packages_of_its_own",
        "test_memory_limit",
        "test_missing_entry_point_is_said_at_the_start[docker-spares-no-such-program]",
        "test_name_that_is_taken",
        "test_server_of_the_host_is_reached",
        "test_stop_lets_a_handler_of_sigterm_finish",
    },
    # What the manager and its agents do in place of one engine: services, secrets, answers across nodes. By day,
    # test_swarm_containers.py shows most of it of one container, test_swarm_networks.py what a host reaches, and
    # test_swarm_carrying.py that a container outlives its owner.
    "swarm": {
        "test_an_id_that_was_never_given_is_not_found",
        "test_container_on_a_network_that_is_not_there",
        "test_image_of_another_version_is_used_and_said",
        "test_missing_folder_to_mount",
        "test_network_is_found_by_its_labels_and_given_back",
        "test_network_name_that_is_taken",
        "test_unknown_image_says_what_there_is",
        "test_usage_and_meter_of_a_running_container",
    },
    # That files go to the node and come back, and that a kill loses none, test_swarm_carrying.py shows by day.
    "swarm-carrying": set(),
}


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a change's run on a Swarm and with spare containers short."""
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        target, names = str(params.get("target")), {item.name, item.name.split("[")[0]}
        if (target in BY_DAY and not names & BY_DAY[target]) or (target == "docker" and names & BY_NIGHT_ON_DOCKER):
            item.add_marker("nightly")

    def leave_out(name: str) -> bool:
        if "[swarm" not in name or config.option.swarm == "whole":
            return name.startswith(f"{ELSEWHERE}[swarm")
        base = name.split("[")[0]
        whole_only = {name, base} & AS_ON_ONE_ENGINE or ("[swarm-carrying" in name and name not in WITH_FILES)
        return base == ELSEWHERE or bool(whole_only)

    left = [item for item in items if leave_out(item.name)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.fixture
def server() -> Iterator[Listener]:
    """A server of this machine's, which greets whoever connects."""

    def greet(_environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Length", "5")])
        return [b"hello"]

    listener = Listener("127.0.0.1", 0)
    listener.serve(greet)
    yield listener
    listener.close()


@pytest.fixture
def others() -> Iterator[list[tuple[str, int]]]:
    """Another server of this machine, which listens on all of its addresses: these, and its port."""
    stopping = threading.Event()
    with socket.create_server(("", 0)) as listening:

        def greet() -> None:
            while not stopping.is_set():
                try:
                    connection = listening.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello")

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        found = [
            address.address
            for addresses in psutil.net_if_addrs().values()
            for address in addresses
            if address.family == socket.AF_INET
        ]
        yield [(address, listening.getsockname()[1]) for address in dict.fromkeys(found)]
        stopping.set()
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture(scope="session")
def kept_agents(swarm_nodes_with_rules: SwarmNodes) -> Iterator[SwarmNodes]:
    """Nodes of a Swarm with agents that stay from test to test: to start them takes a second or two."""
    from container_runtime.swarm.engine import SwarmEngine

    nodes = swarm_nodes_with_rules
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
        keeper = SwarmEngine("keeper", nodes.folder / "key")
    container = keeper.start(ContainerSpec("keeper", "sagemaker-debugger-rules", entrypoint=("sleep", "100000")))
    yield nodes
    keeper.remove(container)
    keeper.close()


@pytest.fixture
def swarm_engine(kept_agents: SwarmNodes, monkeypatch: pytest.MonkeyPatch) -> Iterator[SwarmEngine]:
    """A back end of those nodes, and nothing left of what it ran."""
    from container_runtime.swarm.engine import SwarmEngine

    monkeypatch.setenv("DOCKER_HOST", f"unix://{kept_agents.manager.socket}")
    engine = SwarmEngine(f"test-{uuid.uuid4().hex[:12]}", kept_agents.folder / "key")
    yield engine
    for container in engine.find({}):
        engine.remove(container.id)
    for network in engine.find_networks({}):
        engine.remove_network(network.name)
    engine.close()
