"""The import aliases of `smdebug.core`, and the finder that resolves them."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PREFIX = "smdebug.core."

# An alias is the very module that it names, because code written for smdebug sets module attributes.
ALIASES = {
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
    "singleton_utils": "smdebug.capture.singleton",
    "state_store": "smdebug.capture.state_store",
    "tensor": "smdebug.reading.tensor",
    "tfevent.timeline_file_writer": "smdebug.compatibility.loose_names",
    "tfevent.util": "smdebug.compatibility.loose_names",
    "tfrecord.record_reader": "smdebug.compatibility.tfrecord",
    "tfrecord.record_writer": "smdebug.compatibility.tfrecord",
    "tfrecord.tensor_reader": "smdebug.compatibility.tfrecord",
    "utils": "smdebug.compatibility.loose_names",
    "writer": "smdebug.writing.file_writer",
}
# Packages of aliases, with the public names of several modules of `smdebug.compatibility`.
PACKAGES = {
    "access_layer": ("access_files", "run_state", "s3_handler"),
    "tfevent": (),
    "tfrecord": ("tfrecord",),
}


class _AliasFinder(MetaPathFinder, Loader):
    """Finds and loads the aliases; asked after all other finders."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        alias = fullname.removeprefix(_PREFIX)
        if alias == fullname or alias not in ALIASES.keys() | PACKAGES.keys():
            return None
        return ModuleSpec(fullname, self, is_package=alias in PACKAGES)

    def exec_module(self, module: ModuleType) -> None:
        alias = module.__name__.removeprefix(_PREFIX)
        if alias in ALIASES:
            sys.modules[module.__name__] = import_module(ALIASES[alias])
            return
        sources = [import_module(f"smdebug.compatibility.{name}") for name in PACKAGES[alias]]
        names = {name: getattr(each, name) for each in sources for name in each.__all__}
        module.__doc__ = f"`{module.__name__}`, as code written for smdebug imports it."
        vars(module).update(names, __all__=list(names))
        for inner in ALIASES:
            if inner.startswith(f"{alias}."):
                import_module(f"{_PREFIX}{inner}")


def install() -> None:
    """Make the aliases importable."""
    sys.meta_path.append(_AliasFinder())
