"""Carriers of one back end's containers."""

import logging
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from container_runtime.runtime import EngineUnavailableError
from container_runtime.swarm import agent
from container_runtime.swarm.file_transfer.carried_folders import Carried
from container_runtime.swarm.file_transfer.carrier import Carrier

logger = logging.getLogger(__name__)


class Carriers:
    """The carriers of one back end's containers. Thread-safe.

    Args:
        find_agent: see ``Nodes.find_agent``.
        key: file of the agents' key.
        user: uid and gid that containers run as.
        lost: folder of this machine whose content was lost. For containers that are reattached, it is copied again from
            their node. None if nothing was lost.
        kill: function that ends a container whose named pipe ends too early. The container would otherwise take the
            data that it has read as complete.
    """

    def __init__(
        self,
        find_agent: Callable[[str], tuple[str, int]],
        key: Path,
        user: tuple[int, int],
        lost: Path | None = None,
        *,
        kill: Callable[[str], None],
    ) -> None:
        self._find_agent, self._user, self._lost, self._kill = find_agent, user, lost, kill
        self._files, self._pipes = (
            agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key, each) for each in (agent.FILES, agent.PIPES)
        )
        self._carriers: dict[str, Carrier] = {}

    def fill(self, container: str, node: str, folders: Sequence[Carried]) -> None:
        carrier = self._carriers[container] = self._make(container, node, folders)
        carrier.fill()

    def reattach(self, container: str, node: str, folders: Sequence[Carried]) -> None:
        """See ``Carrier.reattach``. A container without its folders is skipped, unless they are below ``lost``."""
        for source in (Path(each.source) for each in folders):
            if self._lost is not None and source.is_relative_to(self._lost):
                source.mkdir(parents=True, exist_ok=True)
        try:
            carrier = self._carriers[container] = self._make(container, node, folders)
        except FileNotFoundError as error:
            logger.info("The files of %s are not asked for: %s", container, error)
        else:
            carrier.reattach()

    def was_filled(self, container: str, node: str, folders: Sequence[Carried]) -> bool:
        """Return whether a container's folders were filled. True as well if its node does not answer."""
        try:
            carrier = self._make(container, node, folders)
        except FileNotFoundError:
            return True
        try:
            return carrier.is_filled()
        except EngineUnavailableError:
            return True
        finally:
            carrier.close()

    def finish(self, container: str) -> None:
        if (carrier := self._carriers.get(container)) is not None:
            carrier.finish()

    def lose(self, container: str) -> str:
        """Stop copying for a lost container, and describe what was copied; see ``Carrier.tell_loss``."""
        if (carrier := self._carriers.get(container)) is None:
            return ""
        carrier.close()
        return f" {carrier.tell_loss()}"

    def close(self, container: str) -> None:
        """Stop copying for a container. Idempotent."""
        if (carrier := self._carriers.pop(container, None)) is not None:
            carrier.close()

    def shut(self) -> None:
        """Stop all copying. The files of running containers stay on their nodes until another process reattaches."""
        for container in list(self._carriers):
            self.close(container)

    def _make(self, container: str, node: str, folders: Sequence[Carried]) -> Carrier:
        return Carrier(
            partial(self._find_agent, node),
            self._files,
            self._pipes,
            container,
            folders,
            self._user,
            partial(self._kill, container),
        )
