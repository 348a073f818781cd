"""Framework: the recorder's interface to a framework's hook, with defaults."""

import re
import sys
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
    """The base of a hook, as the recorder knows it.

    Attributes:
        collection_manager: all collections; like the three below read whenever the plan of what is saved is made anew,
            so scripts may change them.
        include_collections: names of those that are saved.
        save_config: for collections without one of their own.
        reduction_config: likewise.
    """

    # Collections that exist from the start with these regexes, and may stay as they are.
    default_collections: ClassVar[dict[str, tuple[str, ...]]] = {CollectionKeys.ALL: (), CollectionKeys.DEFAULT: ()}
    tensor_writer_class: ClassVar[type[TensorWriter]] = TensorWriter

    collection_manager: CollectionManager
    include_collections: list[str]
    save_config: SaveConfig
    reduction_config: ReductionConfig

    def get_worker(self) -> Worker:
        """Return which of the processes that train together this one is; asked at the first step."""
        raise NotImplementedError

    def is_main_process(self) -> bool:
        """Tell whether this process trains: one that only loads data for it writes nothing."""
        return True

    def leave_step(self) -> None:
        """Save what the end of a step shows, and take out the callbacks that it needed."""

    def give_up_step(self) -> None:
        """Take out the callbacks of a step whose file can take nothing more."""

    def detach(self) -> None:
        """Take every callback out of the framework."""

    def prepare_collection(self, collection: Collection) -> None:
        """Resolve what a collection knows only in terms of the framework."""

    def refuse_collection(self, collection: Collection) -> None:
        """Hear of a collection that selects nothing.

        Raises:
            InvalidCollectionConfiguration: always; a hook that no script's author made says it instead.
        """
        raise InvalidCollectionConfiguration(collection.name)


def find_horovod_worker(module: str) -> Worker:
    """Return the worker by Horovod's rank, where the script uses `horovod.<module>`; else the only one."""
    horovod = sys.modules.get(f"horovod.{module}")
    if horovod is not None and horovod.is_initialized():
        return Worker.of_rank(horovod.rank(), horovod.size())
    return Worker.of_rank(0, 1)


@cache
def check_version(
    framework: str, version: str, *, first: tuple[int, int], end: tuple[int, int] | None = None, missing: str
) -> bool:
    """Say once that a version is none of those that a hook was made for; return whether it is one of them.

    Args:
        framework: its name, for people.
        version: as the framework itself says it; one that does not begin with two numbers is taken as supported.
        first: major and minor number of the first that is supported.
        end: of the first after it that is not any more.
        missing: what such a version does not show.
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
            "%s %s is not what this hook was made for, which is %s: %s is not saved.",
            framework,
            version,
            wanted,
            missing,
        )
    return supported
