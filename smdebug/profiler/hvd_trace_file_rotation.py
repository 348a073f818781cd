"""Placeholder for upstream's rotation of Horovod's trace file."""

from smdebug.unsupported import make_unsupported

HvdTraceFileRotation = make_unsupported("HvdTraceFileRotation", "Horovod's own timeline is not captured.")
