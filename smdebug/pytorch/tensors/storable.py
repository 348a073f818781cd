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

# Types that records hold as they are.
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
    """A tensor as a record takes it; the bytes are the tensor's own memory wherever that is possible.

    Attributes:
        data_type: number of the DataType of `content`.
        shape: size of each dimension.
        content: its bytes in C order.
        true_dtype: name of the tensor's dtype if it was widened.
    """

    data_type: int
    shape: tuple[int, ...]
    content: memoryview
    true_dtype: str | None


def take_off_transforms(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor within the wrappers of torch.func's transforms; that of `vmap` has one dimension more."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


def get_storable(tensor: torch.Tensor) -> Storable:
    """Return a tensor of any device, layout and dtype in the form of a record."""
    plain = _to_plain(tensor)
    data_type = _DIRECT.get(plain.dtype)
    if data_type is not None:
        return Storable(data_type, tuple(plain.shape), _get_bytes(plain).data, None)
    array, true_dtype = to_array(plain)
    array, widened_from = get_storable_array(array)
    return Storable(DATA_TYPE_NUMBERS[array.dtype.name], array.shape, get_content(array), true_dtype or widened_from)


def to_array(tensor: torch.Tensor) -> tuple[NDArray[np.generic], str | None]:
    """Return an array of the tensor, and the true dtype where numpy has none like it and a wider one was taken.

    Raises:
        SMDebugTypeError: this worker holds no such numbers.
    """
    plain = _to_plain(tensor)
    true_dtype = None
    if plain.is_complex() and plain.dtype not in (torch.complex64, torch.complex128):
        true_dtype = str(plain.dtype).removeprefix("torch.")
        plain = plain.to(torch.complex64)
    elif plain.is_floating_point() and plain.dtype not in _DIRECT:
        # bfloat16 and the kinds of float8.
        true_dtype = str(plain.dtype).removeprefix("torch.")
        plain = plain.to(torch.float32)
    return view_array(plain), true_dtype


def view_array(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the numbers of a detached tensor of the machine's memory, without a copy if they lie in order.

    `Tensor.numpy()` forbids for good that the memory is resized, which is how `fully_shard()` frees its own.
    """
    return _get_bytes(tensor).view(_get_numpy_dtype(tensor.dtype)).reshape(tensor.shape)


@cache
def _get_numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    return np.dtype(str(dtype).removeprefix("torch."))


def _get_bytes(tensor: torch.Tensor) -> NDArray[np.uint8]:
    return np.asarray(_Memory(tensor.contiguous())) if tensor.numel() else np.empty(0, np.uint8)


class _Memory:
    """The bytes of a tensor as numpy asks for them; the arrays made of it keep it, and so the tensor."""

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
