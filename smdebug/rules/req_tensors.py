"""Import alias of the tensors that rules require."""

from smdebug.rules.required_tensors import RequiredTensors, RequiredTensorsForTrial

__all__ = ["RequiredTensors", "RequiredTensorsForTrial"]
