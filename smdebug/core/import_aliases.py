"""Which module stands behind each of those that code written for smdebug imports, and how it comes to stand there."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PREFIX = "smdebug.core."

# A door of one module is that module: tests of the original set what is in it.
DOORS = {
    "access_layer.file": "smdebug.compatibility.access_files",
    "access_layer.s3": "smdebug.compatibility.access_files",
    "access_layer.s3handler": "smdebug.compatibility.s3_handler",
    "access_layer.utils": "smdebug.compatibility.run_state",
    "collection": "smdebug.config.collection",
    "collection_manager": "smdebug.config.collection_manager",
    "config_constants": "smdebug.environment",
    "config_validator": "smdebug.compatibility.loose_names",
    "error_handling_agent": "smdebug.compatibility.error_handling_agent",
    "hook": "smdebug.capture.hook",
    "hook_utils": "smdebug.compatibility.run_state",
    "index_reader": "smdebug.reading.index_reader",
    "json_config": "smdebug.config.json_config",
    "locations": "smdebug.format.locations",
    "logger": "smdebug.logger",
    "modes": "smdebug.mode_keys",
    "reader": "smdebug.reading.reader",
    "reduction_config": "smdebug.config.reduction_config",
    "reductions": "smdebug.format.reductions",
    "s3_utils": "smdebug.compatibility.s3_handler",
    "sagemaker_utils": "smdebug.environment",
    "save_config": "smdebug.config.save_config",
    "singleton": "smdebug.capture.singleton",
    "state_store": "smdebug.capture.state_store",
    "tensor": "smdebug.reading.tensor",
    "tfevent.timeline_file_writer": "smdebug.compatibility.loose_names",
    "tfevent.util": "smdebug.compatibility.loose_names",
    "tfrecord.record_reader": "smdebug.compatibility.records",
    "tfrecord.record_writer": "smdebug.compatibility.records",
    "tfrecord.tensor_reader": "smdebug.compatibility.records",
    "utils": "smdebug.compatibility.loose_names",
    "writer": "smdebug.writing.file_writer",
}
# Those that hold doors themselves, and offer what is public in several modules.
PACKAGES = {
    "access_layer": ("access_files", "run_state", "s3_handler"),
    "tfevent": (),
    "tfrecord": ("records",),
}


class _Opener(MetaPathFinder, Loader):
    """Finds the doors, after every other finder has been asked, and opens them."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        door = fullname.removeprefix(_PREFIX)
        if door == fullname or door not in DOORS.keys() | PACKAGES.keys():
            return None
        return ModuleSpec(fullname, self, is_package=door in PACKAGES)

    def exec_module(self, module: ModuleType) -> None:
        door = module.__name__.removeprefix(_PREFIX)
        if door in DOORS:
            sys.modules[module.__name__] = import_module(DOORS[door])
            return
        behind = [import_module(f"smdebug.compatibility.{name}") for name in PACKAGES[door]]
        names = {name: getattr(each, name) for each in behind for name in each.__all__}
        module.__doc__ = f"`{module.__name__}`, as code written for smdebug imports it."
        vars(module).update(names, __all__=list(names))
        for inner in DOORS:
            if inner.startswith(f"{door}."):
                import_module(f"{_PREFIX}{inner}")


def install() -> None:
    """Make the doors importable."""
    sys.meta_path.append(_Opener())
