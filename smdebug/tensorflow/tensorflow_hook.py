"""Common base of the Keras and session hooks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from smdebug.capture.hook import BaseHook
from smdebug.config.collection import CollectionKeys
from smdebug.tensorflow.collection import Collection, CollectionManager
from smdebug.tensorflow.workers import get_worker
from smdebug.writing.run_writer import Worker


class TensorflowHook(BaseHook):
    """Defines the tensor names and collections of the TensorFlow hooks.

    `smdebug.tensorflow.tensor_writer` defines the reductions.
    """

    INPUT_TENSOR_SUFFIX = "/inputs"
    OUTPUT_TENSOR_SUFFIX = "/outputs"
    GRADIENT_PREFIX = "gradients/"

    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = CollectionManager.default_collections
    always_saved: ClassVar[tuple[str, ...]] = (
        CollectionKeys.METRICS,
        CollectionKeys.LOSSES,
        CollectionKeys.SM_METRICS,
    )
    manager_class = CollectionManager

    if TYPE_CHECKING:

        def get_collection(self, name: str, create: bool = True) -> Collection:
            """Return a collection to configure; `manager_class` creates the TensorFlow class of collections."""

    def get_worker(self) -> Worker:
        """Return the worker that this process is in the training."""
        return get_worker()
