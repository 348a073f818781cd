"""Fixtures of the contract suite, for pytest."""

from container_runtime.contract.fixtures import make_runtime, runtime, shared, target, traits

__all__ = ["make_runtime", "runtime", "shared", "target", "traits"]
