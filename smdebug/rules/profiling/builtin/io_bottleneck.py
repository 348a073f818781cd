"""IOBottleneck: a GPU that waits for storage."""

from smdebug.profiler.system_samples import GPU, IO_WAIT
from smdebug.rules.parameters import number
from smdebug.rules.profiling.bottleneck import BottleneckRule
from smdebug.rules.profiling.profiler_rule import PATIENCE


class IOBottleneck(BottleneckRule):
    """Fires where a GPU is idle while a core waits for I/O in more than `threshold` percent of a node's samples.

    A sample counts if the least busy GPU is below gpu_threshold while some core waits for I/O for more than
    io_threshold percent of its time. The first `patience` samples of a node are left out.
    """

    parameters = (
        number("threshold", 50, minimum=0, maximum=100),
        number("gpu_threshold", 10, minimum=0, maximum=100),
        number("io_threshold", 50, minimum=0, maximum=100),
        PATIENCE,
    )
    inspects = "the utilisation of GPUs and how long cores wait for I/O"
    kinds = (GPU, IO_WAIT)
    busy = IO_WAIT
    busy_threshold = "io_threshold"
    waits_for = "a core waited for I/O"
    heading = "I/O bottlenecks"
    advice = (
        "Read fewer, larger files: pack small ones into shards, or stream them (pipe or fast-file mode).",
        "Prefetch the next batches, and keep data in memory if it fits.",
        "Save tensors and checkpoints less often.",
    )
