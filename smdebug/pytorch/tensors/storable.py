"""PyTorch tensors as numpy arrays, without a copy where possible."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor

from smdebug.exceptions import SMDebugTypeError
from smdebug.format.arguments import get_content
from smdebug.format.tfevent.data_types import DATA_TYPE_NUMBERS, get_storable_array
from smdebug.pytorch.tensors.sharded import get_local_part

# Types that records store without conversion.
_DIRECT = {
    torch.float32: DATA_TYPE_NUMBERS["float32"],
    torch.float64: DATA_TYPE_NUMBERS["float64"],
    torch.float16: DATA_TYPE_NUMBERS["float16"],
    torch.int64: DATA_TYPE_NUMBERS["int64"],
    torch.int32: DATA_TYPE_NUMBERS["int32"],
    torch.uint8: DATA_TYPE_NUMBERS["uint8"],
    torch.bool: DATA_TYPE_NUMBERS["bool"],
}


class Storable(NamedTuple):
    """A tensor in the form of a record; the bytes are the tensor's memory if possible.

    Attributes:
        data_type: number of the DataType of `content`.
        shape: size of each dimension.
        content: bytes in C order.
        true_dtype: name of the tensor's dtype if it was widened, else None.
    """

    data_type: int
    shape: tuple[int, ...]
    content: memoryview
    true_dtype: str | None


def take_off_transforms(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor inside the wrappers of torch.func's transforms; that of `vmap` has an additional dimension."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


def get_storable(tensor: torch.Tensor) -> Storable:
    """Convert a tensor of any device, layout and dtype to the form of a record."""
    plain = _to_plain(tensor)
    data_type = _DIRECT.get(plain.dtype)
    if data_type is not None:
        return Storable(data_type, tuple(plain.shape), _get_bytes(plain).data, None)
    array, true_dtype = to_array(plain)
    array, widened_from = get_storable_array(array)
    return Storable(DATA_TYPE_NUMBERS[array.dtype.name], array.shape, get_content(array), true_dtype or widened_from)


def to_array(tensor: torch.Tensor) -> tuple[NDArray[np.generic], str | None]:
    """Convert a tensor to an array; also return the name of its dtype if numpy lacks it and the array is wider.

    Raises:
        SMDebugTypeError: this worker does not hold the tensor's values.
    """
    plain = _to_plain(tensor)
    true_dtype = None
    if plain.is_complex() and plain.dtype not in (torch.complex64, torch.complex128):
        true_dtype = str(plain.dtype).removeprefix("torch.")
        plain = plain.to(torch.complex64)
    elif plain.is_floating_point() and plain.dtype not in _DIRECT:
        # bfloat16 and the float8 types.
        true_dtype = str(plain.dtype).removeprefix("torch.")
        plain = plain.to(torch.float32)
    return view_array(plain), true_dtype


def view_array(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the array of a detached CPU tensor, without a copy if the tensor is contiguous.

    `Tensor.numpy()` permanently prevents resizing of the memory, which `fully_shard()` uses to free its memory.
    """
    return _get_bytes(tensor).view(_get_numpy_dtype(tensor.dtype)).reshape(tensor.shape)


@cache
def _get_numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    return np.dtype(str(dtype).removeprefix("torch."))


def _get_bytes(tensor: torch.Tensor) -> NDArray[np.uint8]:
    return np.asarray(_Memory(tensor.contiguous())) if tensor.numel() else np.empty(0, np.uint8)


class _Memory:
    """The bytes of a tensor for numpy's array interface; arrays made from it keep the tensor alive."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        address = tensor.data_ptr()
        if not address:
            raise SMDebugTypeError(f"A tensor of type {type(tensor).__name__} has no memory of its own to save.")
        self.__array_interface__ = {"data": (address, True), "shape": (tensor.nbytes,), "typestr": "|u1", "version": 3}


def _to_plain(tensor: torch.Tensor) -> torch.Tensor:
    local = get_local_part(tensor)
    if local is None:
        raise SMDebugTypeError(f"A tensor of type {type(tensor).__name__} cannot be saved.")
    plain = local.detach()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    elif plain.is_quantized:
        plain = plain.dequantize()
    if plain.device.type != "cpu":
        plain = plain.cpu()
    return plain.resolve_conj().resolve_neg() if plain.is_complex() or plain.is_neg() else plain
