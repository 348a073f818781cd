"""Tests of smdebug's public names: importable, documented and listed."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

# By module, as documents, examples, notebooks, the SageMaker SDK and the training toolkit import them.
NAMES = {
    "smdebug": "CollectionKeys ReductionConfig SaveConfig SaveConfigMode __version__ exceptions modes",
    "smdebug.pytorch": "Collection CollectionKeys Hook ReductionConfig SaveConfig SaveConfigMode create_trial del_hook "
    "get_hook modes set_hook",
    "smdebug.pytorch.collection": "Collection CollectionKeys CollectionManager",
    "smdebug.pytorch.hook": "Collection CollectionKeys CollectionManager Hook",
    "smdebug.pytorch.singleton_utils": "del_hook get_hook set_hook",
    "smdebug.tensorflow": "Collection CollectionKeys EstimatorHook KerasHook ReductionConfig SaveConfig SaveConfigMode "
    "SessionHook create_trial del_hook get_hook modes set_hook",
    "smdebug.tensorflow.collection": "Collection CollectionKeys CollectionManager",
    "smdebug.tensorflow.keras": "Collection CollectionKeys CollectionManager KerasHook",
    "smdebug.tensorflow.session": "Collection CollectionKeys CollectionManager EstimatorHook SessionHook",
    "smdebug.tensorflow.singleton_utils": "del_hook get_hook set_hook",
    "smdebug.profiler.algorithm_metrics_reader": "LocalAlgorithmMetricsReader S3AlgorithmMetricsReader",
    "smdebug.profiler.system_metrics_reader": "LocalSystemMetricsReader S3SystemMetricsReader",
    "smdebug.profiler.profiler_constants": "HOROVODTIMELINE_SUFFIX MODELTIMELINE_SUFFIX PYTHONTIMELINE_SUFFIX "
    "SMDATAPARALLELTIMELINE_SUFFIX TENSORBOARDTIMELINE_SUFFIX",
    "smdebug.profiler.python_profile_utils": "PythonProfileModes StepPhase",
    "smdebug.profiler.utils": "TimeUnits us_since_epoch_to_human_readable_time",
    "smdebug.profiler.analysis.notebook_utils.heatmap": "Heatmap",
    "smdebug.profiler.analysis.notebook_utils.metrics_histogram": "MetricsHistogram",
    "smdebug.profiler.analysis.notebook_utils.step_histogram": "StepHistogram",
    "smdebug.profiler.analysis.notebook_utils.step_timeline_chart": "StepTimelineChart",
    "smdebug.profiler.analysis.notebook_utils.timeline_charts": "TimelineCharts",
    "smdebug.profiler.analysis.notebook_utils.training_job": "TrainingJob",
    "smdebug.profiler.analysis.python_profile_analysis": "PyinstrumentAnalysis cProfileAnalysis",
    "smdebug.profiler.analysis.utils.merge_timelines": "MergeUnit MergedTimeline",
    "smdebug.profiler.analysis.utils.pandas_data_analysis": "PandasFrameAnalysis Resource StatsBy",
    "smdebug.profiler.analysis.utils.profiler_data_to_pandas": "PandasFrame",
    "smdebug.profiler.analysis.utils.python_profile_analysis_utils": "Metrics PythonProfileModes StepPhase",
    "smdebug.profiler.analysis.utils.pytorch_dataloader_analysis": "PT_dataloader_analysis",
    "smdebug.trials": "LocalTrial S3Trial Trial create_trial",
    "smdebug.rules": "RequiredTensors RequiredTensorsForTrial Rule invoke_rule",
    "smdebug.rules.rule": "Rule",
    "smdebug.rules.action": "Actions",
    "smdebug.rules.action.action": "Actions",
    "smdebug.rules.action.message_action": "MessageAction",
    "smdebug.rules.action.stop_training_action": "StopTrainingAction",
    "smdebug.exceptions": "IndexReaderException InsufficientInformationForRuleInvocation "
    "InvalidCollectionConfiguration InvalidWorker MissingCollectionFiles NoMoreData NoMoreProfilerData "
    "RuleEvaluationConditionMet SMDebugCustomerError "
    "SMDebugError SMDebugNotImplementedError SMDebugRuntimeError SMDebugTypeError SMDebugValueError "
    "ShapeUnavailableForStep StepNotYetAvailable StepUnavailable TensorUnavailable TensorUnavailableForStep modes",
    "smdebug.analysis.utils": "_tensor_name_sorter no_refresh parse_bool parse_list_from_str refresh",
    "smdebug.core.modes": "ALLOWED_MODES ALLOWED_MODE_NAMES MODE_PLUGIN_NAME MODE_STEP_PLUGIN_NAME ModeKeys "
    "str_to_mode_keys",
    "smdebug.core.collection": "Collection CollectionKeys DEFAULT_MXNET_COLLECTIONS DEFAULT_PYTORCH_COLLECTIONS "
    "DEFAULT_TF_COLLECTIONS DEFAULT_XGBOOST_COLLECTIONS NON_HISTOGRAM_COLLECTIONS NON_REDUCTION_COLLECTIONS "
    "SCALAR_COLLECTIONS SM_METRIC_COLLECTIONS SUMMARIES_COLLECTIONS",
    "smdebug.core.collection_manager": "CollectionManager",
    "smdebug.core.save_config": "DEFAULT_SAVE_CONFIG_END_STEP DEFAULT_SAVE_CONFIG_INTERVAL "
    "DEFAULT_SAVE_CONFIG_SAVE_STEPS DEFAULT_SAVE_CONFIG_START_STEP SaveConfig SaveConfigMode",
    "smdebug.core.reduction_config": "ALLOWED_NORMS ALLOWED_REDUCTIONS ReductionConfig",
    "smdebug.core.reductions": "REDUCTIONS_PREFIX get_basic_numpy_reduction get_numpy_reduction "
    "get_reduction_tensor_name reverse_reduction_tensor_name",
    "smdebug.core.writer": "FileWriter",
    "smdebug.core.reader": "FileReader",
    "smdebug.core.tensor": "ModeSteps Step StepState Tensor",
    "smdebug.core.locations": "IndexFileLocationUtils TensorFileLocation TensorLocation TensorShape "
    "TensorboardFileLocation TraceFileLocation",
    "smdebug.core.index_reader": "LocalIndexReader ReadIndexFilesCache S3IndexReader",
    "smdebug.core.json_config": "CONFIG_FILE_PATH_ENV_STR DEFAULT_RESOURCE_CONFIG_FILE DEFAULT_SAGEMAKER_OUTDIR "
    "add_collections_to_manager collect_hook_config_params create_hook_from_json_config get_include_collections "
    "get_json_config_as_dict get_node_id_from_resource_config",
    "smdebug.core.config_constants": "CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR CONFIG_FILE_PATH_ENV_STR "
    "DEFAULT_COLLECTIONS_FILE_NAME DEFAULT_SAGEMAKER_METRICS_PATH DEFAULT_SAGEMAKER_OUTDIR "
    "DEFAULT_SAGEMAKER_TENSORBOARD_PATH DEFAULT_WORKER_NAME INCOMPLETE_STEP_WAIT_WINDOW_KEY LOG_DUPLICATION_THRESHOLD "
    "MISSING_EVENT_FILE_RETRY_LIMIT_KEY PAPERMILL_EXECUTION_ENV_VAR PROFILER_REPORT_VERSION PROFILER_TELEMETRY_URL "
    "TENSORBOARD_CONFIG_FILE_PATH_ENV_STR",
    "smdebug.core.utils": "FRAMEWORK SagemakerSimulator ScriptSimulator _is_using_smmodelparallel "
    "_prepare_telemetry_url check_dir_exists deserialize_tf_device ensure_dir error_handling_agent "
    "get_aws_region_from_processing_job_arn get_logger get_path_to_collections get_worker_name_from_collection_file "
    "is_first_process is_framework_version_supported is_s3 make_numpy_array parse_worker_name_from_file "
    "remove_file_if_exists serialize_tf_device setup_profiler_report",
    "smdebug.core.access_layer": "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC ENV_RULE_STOP_SIGNAL_FILENAME TSAccessFile "
    "TSAccessS3 check_dir_exists delete_s3_prefixes has_training_ended is_rule_signalled_gracetime_passed is_s3 "
    "training_has_ended",
    "smdebug.core.access_layer.utils": "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC ENV_RULE_STOP_SIGNAL_FILENAME "
    "check_dir_exists delete_s3_prefixes has_training_ended is_rule_signalled_gracetime_passed is_s3 "
    "training_has_ended",
    "smdebug.core.access_layer.file": "SMDEBUG_TEMP_PATH_SUFFIX TSAccessFile get_temp_path",
    "smdebug.core.access_layer.s3": "TSAccessS3",
    "smdebug.core.access_layer.s3handler": "DeleteRequest ListRequest ReadObjectRequest S3Handler",
    "smdebug.core.hook_utils": "verify_and_get_out_dir",
    "smdebug.core.state_store": "StateStore",
    "smdebug.core.logger": "DuplicateLogFilter get_logger",
    "smdebug.core.config_validator": "ConfigValidator get_config_validator reset_config_validator",
    "smdebug.core.error_handling_agent": "BASE_ERROR_MESSAGE ErrorHandlingAgent",
    "smdebug.core.hook": "BaseHook CallbackHook",
    "smdebug.core.tfrecord": "CHECKSUM_MAGIC_BYTES RecordReader RecordWriter TensorReader masked_crc32c",
    "smdebug.core.tfrecord.record_writer": "CHECKSUM_MAGIC_BYTES RecordWriter masked_crc32c",
    "smdebug.core.tfrecord.record_reader": "RecordReader",
    "smdebug.core.tfrecord.tensor_reader": "TensorReader",
    "smdebug.core.s3_utils": "list_s3_objects",
    "smdebug.core.sagemaker_utils": "is_sagemaker_job",
    "smdebug.core.tfevent.util": "_get_proto_dtype",
    "smdebug.core.tfevent.timeline_file_writer": "TimelineFileWriter",
}
# Tested in tensorflow/test_names.py, in the worker that imports TensorFlow: these modules do.
OF_TENSORFLOW = "smdebug.tensorflow"

# Members of hooks that scripts and AWS's builds of the frameworks use.
HOOK_MEMBERS = [
    "add_collection",
    "close",
    "collection_manager",
    "create_from_json_file",
    "get_collection",
    "get_collections",
    "has_default_configuration",
    "has_default_hook_configuration",
    "has_registered_loss_module",
    "has_registered_module",
    "include_collections",
    "logger",
    "mode_steps",
    "out_dir",
    "profiling_end",
    "profiling_end_batch",
    "profiling_start_batch",
    "record_tensor_value",
    "record_trace_events",
    "register_hook",
    "register_loss",
    "register_module",
    "save_config",
    "save_scalar",
    "save_tensor",
    "set_mode",
    "should_save_dataloader_metrics",
    "should_save_layer",
    "should_save_tensor_or_collection",
    "step",
    "tensorboard_dir",
    "_cleanup",
    "_get_worker_name",
    "_increment_step",
    "_write_raw_tensor_simple",
    "_prepare_collections",
]

# Members of other classes that upstream's tests, documents and examples use.
MEMBERS = {
    "smdebug.core.writer.FileWriter": "close flush name write_graph write_histogram_summary write_scalar_summary "
    "write_shape write_summary write_tensor",
    "smdebug.core.reader.FileReader": "read_events read_tensors",
    "smdebug.core.locations.TensorFileLocation": "get_dir get_file_location get_filename get_step_dir_path "
    "get_step_dirs load_filename",
    "smdebug.core.collection.Collection": "add_tensor_name from_dict from_json has_tensor_name include "
    "remove_tensor_name to_json to_json_dict",
    "smdebug.core.collection_manager.CollectionManager": "add create_collection export get get_collections "
    "get_num_workers load load_from_string set_num_workers to_json_dict update_meta",
    "smdebug.core.state_store.StateStore": "get_last_saved_state is_checkpoint_updated update_state",
    "smdebug.core.tensor.Tensor": "prev_steps reduction_value reduction_values shape shapes steps value values workers",
    "smdebug.trials.Trial": "_global_to_mode collection collection_manager collections global_step has_passed_step "
    "has_tensor index_reader inputs labels last_complete_step last_index_token loaded_all_steps mode mode_step modes "
    "num_workers predictions steps tensor tensor_names wait_for_steps workers workers_for_global_step",
}

# Modules whose `__all__` is the whole of what they offer.
ALIASES = [
    "smdebug",
    "smdebug.pytorch",
    "smdebug.pytorch.collection",
    "smdebug.tensorflow",
    "smdebug.tensorflow.collection",
    "smdebug.rules.action",
    "smdebug.core.utils",
    "smdebug.core.access_layer",
    "smdebug.core.access_layer.file",
    "smdebug.core.access_layer.s3",
    "smdebug.core.access_layer.s3handler",
    "smdebug.core.access_layer.utils",
    "smdebug.core.config_validator",
    "smdebug.core.error_handling_agent",
    "smdebug.core.hook_utils",
    "smdebug.core.s3_utils",
    "smdebug.core.tfrecord",
]


def check_names(module: str) -> None:
    for name in NAMES[module].split():
        namespace: dict[str, object] = {}
        exec(f"from {module} import {name}", namespace)
        found = namespace[name]
        if inspect.isclass(found) or inspect.isroutine(found):
            assert (inspect.getdoc(found) or "").strip(), name


@pytest.mark.parametrize("module", [module for module in NAMES if not module.startswith(OF_TENSORFLOW)])
def test_names_can_be_imported_and_say_what_they_are(module: str) -> None:
    check_names(module)


def test_a_hook_has_all_members(tmp_path: Path) -> None:
    from smdebug.pytorch import Hook, del_hook

    hook = Hook(out_dir=str(tmp_path))
    assert [member for member in HOOK_MEMBERS if not hasattr(hook, member)] == []
    hook.close()
    del_hook()


@pytest.mark.parametrize("owner", MEMBERS)
def test_members_are_there_and_say_what_they_are(owner: str) -> None:
    module, _, name = owner.rpartition(".")
    for member in MEMBERS[owner].split():
        found = getattr(getattr(importlib.import_module(module), name), member)
        assert (inspect.getdoc(found) or "").strip(), member


def check_all(module: str) -> None:
    alias = importlib.import_module(module)
    assert len(alias.__all__) == len(set(alias.__all__))
    for name in alias.__all__:
        assert hasattr(alias, name)
    pinned = set(NAMES.get(module, "").split())
    public = {name for name in pinned if not name.startswith("_")} - {"exceptions"}
    assert public <= set(alias.__all__)


@pytest.mark.parametrize("module", [module for module in ALIASES if not module.startswith(OF_TENSORFLOW)])
def test_all_is_what_can_be_imported(module: str) -> None:
    check_all(module)


def test_version_is_that_of_the_library_whose_files_these_are() -> None:
    import smdebug

    assert smdebug.__version__ == "1.0.34"


@pytest.mark.slow
def test_importing_every_name_starts_nothing_and_loads_no_framework() -> None:
    frameworks = ("smdebug.pytorch", "smdebug.tensorflow.keras", "smdebug.tensorflow.session")
    # Frames are what the analysis of profiles is for.
    left_out = (*frameworks, "smdebug.profiler.analysis")
    modules = [module for module in NAMES if not module.startswith(left_out)]
    code = (
        "import importlib, sys, threading\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        "assert threading.active_count() == 1\n"
        "loaded = {'torch', 'boto3', 'tensorflow', 'pandas', 'requests'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=400)
    assert (done.returncode, done.stderr) == (0, "")


# Names that the standard library has from 3.11 on; the library runs on 3.10.
NEWER_NAMES = {
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"ReprEnum", "StrEnum", "verify"},
    "typing": {"LiteralString", "Never", "NotRequired", "Required", "Self", "TypeVarTuple", "Unpack", "assert_never"},
}


def test_the_library_imports_no_name_that_python_3_10_lacks() -> None:
    package = Path(importlib.import_module("smdebug").__path__[0])
    found = []
    for path in package.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if not any(name in source for names in NEWER_NAMES.values() for name in names):
            continue
        tree = ast.parse(source)
        checks = [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ]
        for_annotations = {inner for node in checks for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node not in for_annotations:
                newer = NEWER_NAMES.get(node.module or "", set()) & {alias.name for alias in node.names}
                found += [f"{path.relative_to(package)}: {name}" for name in newer]
    assert not found
