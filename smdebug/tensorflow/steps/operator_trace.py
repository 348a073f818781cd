"""TensorFlow profiler traces as files for TensorBoard and trace viewers.

Perfetto and chrome://tracing can open them too.
"""

import gzip
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from smdebug.storage.output import write_whole_file

# Modules that define the profile format, in different versions of TensorFlow.
_FORMATS = ("tensorflow.tsl.profiler.protobuf.xplane_pb2", "tensorflow.core.profiler.protobuf.xplane_pb2")


def write_operator_trace(profile: Path, folder: Path, name: str) -> None:
    """Copy a profile to a folder, and add the trace events of each host, which newer TensorFlow versions do not write.

    Args:
        profile: folder that TensorFlow has written to.
        folder: destination folder.
        name: name, without its suffix, of an empty metadata file that identifies the process and the time range.
    """
    for path in sorted(profile.rglob("*")):
        if not path.is_file():
            continue
        place = folder / path.relative_to(profile)
        write_whole_file(str(place), [path.read_bytes()])
        if path.name.endswith(".xplane.pb"):
            trace = {"displayTimeUnit": "ns", "traceEvents": list(read_trace_events(path.read_bytes()))}
            traced = place.with_name(path.name.replace(".xplane.pb", ".trace.json.gz"))
            write_whole_file(str(traced), [gzip.compress(json.dumps(trace).encode())])
            traced.with_name(f"{name}.metadata").touch()


def read_trace_events(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events of a profile in the trace event format, with times in microseconds."""
    space = _find_format().XSpace.FromString(content)
    for process, plane in enumerate(space.planes, 1):
        if not plane.lines:
            continue
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": plane.name}}
        for line in plane.lines:
            thread = line.display_name or line.name
            yield {"ph": "M", "pid": process, "tid": line.id, "name": "thread_name", "args": {"name": thread}}
            for event in line.events:
                described = plane.event_metadata[event.metadata_id]
                yield {
                    "ph": "X",
                    "pid": process,
                    "tid": line.id,
                    "name": described.display_name or described.name,
                    "ts": line.timestamp_ns / 1000 + event.offset_ps / 1_000_000,
                    "dur": event.duration_ps / 1_000_000,
                }


def _find_format() -> Any:
    for name in _FORMATS:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError(f"This TensorFlow has none of {', '.join(_FORMATS)}.")
