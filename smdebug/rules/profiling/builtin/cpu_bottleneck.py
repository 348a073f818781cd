"""CPUBottleneck: a GPU that waits for the CPU."""

from smdebug.profiler.system_samples import CPU, GPU
from smdebug.rules.parameters import number
from smdebug.rules.profiling.bottleneck import BottleneckRule
from smdebug.rules.profiling.profiler_rule import PATIENCE


class CPUBottleneck(BottleneckRule):
    """Fires where a GPU is idle while a core is busy in more than `threshold` percent of a node's samples.

    A sample counts if the least busy GPU is below gpu_threshold while the busiest core is above cpu_threshold. The
    first `patience` samples of a node are left out; the share is that of all later ones.
    """

    parameters = (
        number("threshold", 50, minimum=0, maximum=100),
        number("gpu_threshold", 10, minimum=0, maximum=100),
        number("cpu_threshold", 90, minimum=0, maximum=100),
        PATIENCE,
    )
    inspects = "the utilisation of GPUs and of the processor's cores"
    kinds = (GPU, CPU)
    busy = CPU
    busy_threshold = "cpu_threshold"
    waits_for = "a core was"
    heading = "CPU bottlenecks"
    advice = (
        "Load and transform data in several processes (PyTorch: num_workers, TensorFlow: num_parallel_calls).",
        "Move transformations to the GPU, or do them once, before the training.",
        "Or use an instance with more cores per GPU.",
    )
