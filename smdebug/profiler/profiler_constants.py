"""Constants of the profiler's files, for code written for smdebug."""

DEFAULT_PREFIX = "framework/pevents"
DEFAULT_SYSTEM_PROFILER_PREFIX = "system"
PYTHONTIMELINE_SUFFIX = "pythontimeline.json"
MODELTIMELINE_SUFFIX = "model_timeline.json"
TENSORBOARDTIMELINE_SUFFIX = "trace.json.gz"
HOROVODTIMELINE_SUFFIX = "horovod_timeline.json"
SMDATAPARALLELTIMELINE_SUFFIX = "smdataparallel_timeline.json"
MERGEDTIMELINE_SUFFIX = "merged_timeline.json"
# Suffixes of the files, in the order in which readers return their events.
SUFFIXES = (
    PYTHONTIMELINE_SUFFIX,
    MODELTIMELINE_SUFFIX,
    TENSORBOARDTIMELINE_SUFFIX,
    HOROVODTIMELINE_SUFFIX,
    SMDATAPARALLELTIMELINE_SUFFIX,
)
# Later than any event, in microseconds since the epoch.
LAST = 1 << 62
# A file may contain events that happened this long before the time in its name.
TIME_BUFFER_DEFAULT = 180_000_000
ENV_TIME_BUFFER = "TIME_BUFFER_MICROSECONDS"
CONVERT_TO_MICROSECS = 1_000_000
CPROFILE_NAME = "cprofile"
PYINSTRUMENT_NAME = "pyinstrument"
CPROFILE_STATS_FILENAME = "python_stats"
PYINSTRUMENT_JSON_FILENAME = "python_stats.json"
PYINSTRUMENT_HTML_FILENAME = "python_stats.html"

# Defaults of upstream's own profiler, for code that imports them.
PYTHON_PROFILING_START_STEP_DEFAULT = 9
PROFILING_NUM_STEPS_DEFAULT = 1
PROFILER_DURATION_DEFAULT = float("inf")
CONFIG_PATH_DEFAULT = "/opt/ml/input/config/profilerconfig.json"
BASE_FOLDER_DEFAULT = "/opt/ml/output/profiler"
CONVERT_MICRO_TO_NS = 1000
