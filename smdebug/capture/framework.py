"""Framework: the recorder's interface to a framework's hook, with defaults."""

import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

from smdebug.capture.one_process import KeptOutOfCopies
from smdebug.capture.tensor_writer import TensorWriter
from smdebug.config.collection import Collection, CollectionKeys
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import InvalidCollectionConfiguration
from smdebug.job_warnings import TENSORS_DROPPED, warn_user
from smdebug.writing.run_writer import Worker


class Framework(KeptOutOfCopies):
    """Base class of `BaseHook`: the members by which the recorder uses a hook.

    The attributes are read whenever the saving plan is recomputed, so scripts may change them.

    Attributes:
        collection_manager: all collections.
        include_collections: names of the collections that are saved.
        save_config: for collections that have no save config.
        reduction_config: for collections that have no reduction config.
    """

    # Collections that exist from the start, with their regexes. They may select nothing.
    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = {CollectionKeys.ALL: (), CollectionKeys.DEFAULT: ()}
    tensor_writer_class: ClassVar[type[TensorWriter]] = TensorWriter

    collection_manager: CollectionManager
    include_collections: list[str]
    save_config: SaveConfig
    reduction_config: ReductionConfig

    def get_worker(self) -> Worker:
        """Return which worker of the training this process is; called at the first step."""
        raise NotImplementedError

    def is_main_process(self) -> bool:
        """Return whether this process trains; a process that only loads data writes nothing."""
        return True

    def leave_step(self) -> None:
        """Save the values known at the end of a step, and remove the step's callbacks."""

    def give_up_step(self) -> None:
        """Remove the callbacks of a step whose file cannot be written any more."""

    def detach(self) -> None:
        """Remove every callback from the framework."""

    def prepare_collection(self, collection: Collection) -> None:
        """Resolve the parts of a collection that are given as objects of the framework."""

    def refuse_collection(self, collection: Collection) -> None:
        """Handle a collection that selects nothing.

        Raises:
            InvalidCollectionConfiguration: always; a hook created without script changes warns instead.
        """
        raise InvalidCollectionConfiguration(collection.name)


def find_horovod_worker(module: str) -> Worker:
    """Return the worker with Horovod's rank if the script uses `horovod.<module>`, else the only worker."""
    horovod = sys.modules.get(f"horovod.{module}")
    if horovod is not None and horovod.is_initialized():
        return Worker.of_rank(horovod.rank(), horovod.size())
    return Worker.of_rank(0, 1)


@cache
def check_version(
    framework: str, version: str, *, first: tuple[int, int], end: tuple[int, int] | None = None, missing: str
) -> bool:
    """Return whether a hook supports the framework's version; warn once if not.

    Args:
        framework: display name of the framework.
        version: version string of the framework; one that does not begin with two numbers counts as supported.
        first: major and minor number of the oldest supported version.
        end: major and minor number of the first later version that is not supported any more; None if there is none.
        missing: what is not saved with an unsupported version, for the message.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        return True
    numbers = int(found[1]), int(found[2])
    supported = first <= numbers and (end is None or numbers < end)
    if not supported:
        wanted = f"{first[0]}.{first[1]} or later" + (f", and older than {end[0]}.{end[1]}" if end else "")
        warn_user(
            TENSORS_DROPPED,
            "%s %s is not supported by this hook, which needs %s: %s is not saved.",
            framework,
            version,
            wanted,
            missing,
        )
    return supported
