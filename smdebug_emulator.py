"""Public names for Python programs and notebooks: an emulator, a decorator, jobs that show themselves.

    from smdebug_emulator import SageMakerEmulator

    with SageMakerEmulator(runtime="process") as emulator:
        ...

In a notebook, ``%load_ext smdebug_emulator`` leads the kernel's AWS clients to an emulator. Each name is imported when
it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sdk_compat.emulator_process import EmulatorStartError
    from sdk_compat.mock_sagemaker import mock_sagemaker
    from sdk_compat.notebook import TrainingJob, TrainingJobs
    from sdk_compat.notebook_extension import load_ipython_extension, unload_ipython_extension
    from sdk_compat.sagemaker_emulator import SageMakerEmulator

__all__ = [
    "EmulatorStartError",
    "SageMakerEmulator",
    "TrainingJob",
    "TrainingJobs",
    "load_ipython_extension",
    "mock_sagemaker",
    "unload_ipython_extension",
]
_MODULES = {
    "EmulatorStartError": "emulator_process",
    "SageMakerEmulator": "sagemaker_emulator",
    "TrainingJob": "notebook",
    "TrainingJobs": "notebook",
    "load_ipython_extension": "notebook_extension",
    "mock_sagemaker": "mock_sagemaker",
    "unload_ipython_extension": "notebook_extension",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"sdk_compat.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error}: {name} needs the emulator's own packages: pip install 'smdebug-emulator[emulator]'.",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return sorted(__all__)
