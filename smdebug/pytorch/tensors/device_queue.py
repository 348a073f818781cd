"""Asynchronous copies of device tensors, awaited once a step."""

import torch

from smdebug.pytorch.tensors.storable import get_storable
from smdebug.writing.step_writer import StepWriter

# Host memory that queued copies may use before they are written.
_MAX_BYTES = 512 * 1024 * 1024


class DeviceQueue:
    """Queue of copies and numbers that the device is still computing."""

    def __init__(self) -> None:
        self._copies: list[tuple[str, torch.Tensor]] = []
        self._devices: set[torch.device] = set()
        self._copied_bytes = 0
        self._numbers: dict[tuple[torch.device, torch.dtype], list[tuple[str, torch.Tensor]]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the copies should be written before the step ends."""
        return self._copied_bytes >= _MAX_BYTES

    def add_copy(self, name: str, tensor: torch.Tensor) -> None:
        """Start to copy a tensor of an accelerator; later changes of the tensor do not affect the copy."""
        source = tensor.detach()
        if source.layout != torch.strided:
            source = source.to_dense()
        if source.is_complex():
            source = source.resolve_conj()
        copy = torch.empty(source.shape, dtype=source.dtype, device="cpu", pin_memory=True)
        copy.copy_(source, non_blocking=True)
        self._devices.add(source.device)
        self._copies.append((name, copy))
        self._copied_bytes += copy.nbytes

    def add_numbers(self, names: list[str], numbers: list[torch.Tensor]) -> None:
        """Add zero-dimensional tensors, which are fetched together."""
        for name, number in zip(names, numbers, strict=True):
            self._numbers.setdefault((number.device, number.dtype), []).append((name, number))

    def write(self, writer: StepWriter) -> None:
        """Wait once for each device, and write everything."""
        copies, self._copies, self._copied_bytes = self._copies, [], 0
        # A model may be on several devices, and only one of them is torch's current one.
        for device in self._devices:
            torch.cuda.synchronize(device)
        self._devices.clear()
        for name, copy in copies:
            writer.add_tensor(name, *get_storable(copy))
        numbers, self._numbers = self._numbers, {}
        for found in numbers.values():
            stacked = get_storable(torch.stack([number for _, number in found]))
            writer.add_numbers([name for name, _ in found], stacked.data_type, stacked.content, stacked.true_dtype)

    def clear(self) -> None:
        """Forget everything."""
        self._copies.clear()
        self._devices.clear()
        self._copied_bytes = 0
        self._numbers.clear()
