"""Table of moto's replaced attributes, and its check at the start.

moto has no interface for storage, for calls to functions, or for what it answers differently than AWS. ``replaced``
changes only what the table lists, so the table is complete. It was run with the versions in ``TESTED_VERSIONS``. With
any other version, the check imports every owner and compares the parameters that the replacements rely on.
"""

import importlib
import inspect
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from emulator.exceptions import StartupError
from emulator.moto_services.sagemaker_kinds import KINDS

logger = logging.getLogger(__name__)

# Tested and excluded: 5.2.0, 5.2.3 and 5.2.4. They store the times of log groups and streams as numbers. So
# PutLogEvents fails, and 5.2.5 cannot read their state.
TESTED_VERSIONS = ("5.2.5",)
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Replacement:
    """An attribute of moto that is replaced.

    Attributes:
        owner: the module of the attribute, or the module and its class or object, separated by a colon.
        name: of the attribute.
        parameters: the first parameters that moto's method must have, without ``self``; "new" if moto has no such
            attribute.
        why: what the emulator does differently.
    """

    owner: str
    name: str
    parameters: str
    why: str

    def __str__(self) -> str:
        return f"{self.owner.replace(':', '.')}.{self.name}"

    def find_owner(self) -> Any:
        """Return the module, class or object; None if its module is not imported or does not have it."""
        module, _, name = self.owner.partition(":")
        found = sys.modules.get(module)
        return getattr(found, name, None) if name else found

    def find_problem(self) -> str | None:
        """Describe what the installed moto lacks; None if the replacement fits."""
        try:
            importlib.import_module(self.owner.partition(":")[0])
        except ImportError as error:
            return f"{self} ({error})"
        owner = self.find_owner()
        if owner is None or (self.parameters != "new" and not hasattr(owner, self.name)):
            return f"{self} is missing"
        if self.parameters in ("", "new"):
            return None
        wanted = self.parameters.split()
        found = list(inspect.signature(getattr(owner, self.name)).parameters)[1:]
        return None if found[: len(wanted)] == wanted else f"{self} takes ({', '.join(found)})"


def _of(owner: str, *rows: tuple[str, str, str]) -> tuple[Replacement, ...]:
    return tuple(Replacement(owner, *row) for row in rows)


REPLACED = (
    # moto's state is durable.
    *_of(
        "moto.core.base_backend:BackendDict",
        ("__getitem__", "account_id", "restores a service when it is first used"),
        ("items", "", "restores a service when it is first used"),
        ("values", "", "restores a service when it is first used"),
    ),
    *_of(
        "moto.core.base_backend:AccountSpecificBackend",
        ("__getitem__", "region_name", "notes which backends a request uses"),
        ("items", "", "notes which backends a request uses"),
        ("values", "", "notes which backends a request uses"),
    ),
    *_of(
        "moto.core.responses:BaseResponse",
        ("setup_class", "request full_url headers", "the look-up of the access key in IAM counts as no change"),
    ),
    *_of(
        "moto.core.common_models:BaseModel",
        ("__new__", "", "no list of all objects ever made, which grows without bound"),
    ),
    *_of("moto.core.utils", ("create_loader", "", "one look at botocore's folders serves the models of all services")),
    *_of(
        "moto.logs.models:LogStream",
        ("put_log_events", "log_events", "events go into a table"),
        ("get_log_events", "start_time end_time limit next_token start_from_head", "events come from the table"),
        ("_update", "", "the first and last times come from the table"),
    ),
    *_of(
        "moto.logs.responses:LogsResponse",
        ("filter_log_events", "", "moto ignores the parameters that say which streams are searched"),
    ),
    *_of(
        "moto.logs.models:LogGroup",
        ("delete_log_stream", "log_stream_name", "the events of the stream are deleted from the table"),
        (
            "filter_log_events",
            "log_group_name log_stream_names start_time end_time limit next_token filter_pattern interleaved",
            "events come from the table",
        ),
        ("put_log_events", "log_stream_name log_events", "metric filters count events"),
    ),
    # S3 keeps objects in files; bodies are streamed.
    *_of("moto.s3.models:s3_backends", ("backend", "", "makes the backends that OVERRIDDEN describes")),
    *_of(
        "moto.s3.responses:S3Response",
        ("setup_class", "request", "the body of a put comes from its file"),
        ("subdomain_based_buckets", "", "the bucket is in the host name only below localhost"),
        ("parse_bucket_name_from_url", "request url", "the bucket is in the host name only below localhost"),
        ("_bucket_response", "request full_url", "XML documents are validated; a policy can deny lists"),
        ("_key_response", "request full_url", "XML documents are validated"),
        ("_get_key", "", "the body of an answer is not read into memory"),
        ("key_response", "request", "the body of an answer is sent from its file"),
        ("serialized", "action_result", "a listing of 1,000 keys is written faster"),
        ("get_bucket_notification", "", "EventBridge's part is described"),
    ),
    *_of(
        "moto.s3.models:FakeBucket",
        ("get_permission", "action resource", "special characters in a bucket policy are matched literally"),
    ),
    # Events and invocations in moto's services are passed to the emulator.
    *_of(
        "moto.awslambda.models:LambdaFunction",
        ("invoke", "body request_headers response_headers", "the emulator runs functions"),
        ("__init__", "account_id spec", "DeadLetterConfig is kept"),
        ("update_configuration", "config_updates", "DeadLetterConfig is kept"),
        ("get_configuration", "", "DeadLetterConfig is described"),
    ),
    *_of(
        "moto.awslambda.responses:LambdaResponse",
        ("get_policy", "", "each version and alias has its own policy"),
        ("add_permission", "", "each version and alias has its own policy"),
        ("remove_permission", "", "each version and alias has its own policy"),
    ),
    *_of(
        "moto.events.models:Rule",
        ("send_to_targets", "original_event", "the emulator delivers events"),
        ("put_targets", "targets", "a rule has at most five targets"),
    ),
    *_of("moto.events.models:EventPattern", ("matches_event", "event", "every operator of EventBridge is matched")),
    *_of("moto.events.models:EventPatternParser", ("_validate_event_pattern", "pattern", "patterns are validated")),
    *_of("moto.events.responses:EventsHandler", ("test_event_pattern", "new", "TestEventPattern")),
    *_of(
        "moto.events.models:EventsBackend",
        ("put_rule", "", "schedules are validated and fire"),
        ("enable_rule", "", "a schedule that is enabled again fires"),
    ),
    *_of(
        "moto.scheduler.models:EventBridgeSchedulerBackend",
        ("create_schedule", "", "schedules are validated and fire"),
        ("update_schedule", "", "schedules are validated and fire"),
    ),
    *_of(
        "moto.sns.models:SNSBackend",
        ("publish", "message arn phone_number subject message_attributes", "the console lists messages"),
    ),
    *_of("moto.sns.models", ("requests", "", "HTTP subscriptions reach addresses of this machine only")),
    *_of(
        "moto.cloudwatch.models:CloudWatchBackend",
        ("put_metric_alarm", "name", "alarms are validated and evaluated"),
        ("put_metric_data", "namespace metric_data", "alarms are evaluated"),
        ("set_alarm_state", "alarm_name", "the alarm's actions run"),
        ("delete_alarms", "alarm_names", "an alarm of a composite alarm cannot be deleted"),
        ("get_filtered_metrics", "metric_name namespace dimensions", "ListMetrics names each metric once"),
        (
            "get_metric_statistics",
            "namespace metric_name start_time end_time period stats dimensions unit",
            "metrics with other dimensions are left out",
        ),
        ("get_metric_data", "queries start_time end_time scan_by", "metrics with other dimensions are left out"),
    ),
    *_of(
        "moto.cloudwatch.responses:CloudWatchResponse",
        ("put_composite_alarm", "new", "PutCompositeAlarm"),
        ("describe_alarms", "", "AlarmTypes is honoured"),
    ),
    *_of(
        "moto.logs.models:LogsBackend",
        ("put_metric_filter", "filter_name filter_pattern log_group_name", "patterns are validated"),
    ),
    *_of(
        "moto.sagemakermetrics.models:SageMakerMetricsBackend",
        ("batch_put_metrics", "trial_component_name metric_data", "a value without a Step gets the next one"),
    ),
    # Answers match those of AWS.
    *_of(
        "moto.sqs.models:Queue",
        ("_set_attributes", "attributes now", "the Policy is kept where a change does not name it"),
        ("attributes", "", "RedrivePolicy is returned as it was set; RedriveAllowPolicy"),
        ("KMS_ATTRIBUTES", "", "RedriveAllowPolicy can be asked for"),
        ("redrive_allow_policy", "new", "RedriveAllowPolicy can be asked for"),
    ),
    *_of(
        "moto.kms.models:KmsBackend",
        ("disable_key", "key_id", "keys are found by ARN"),
        ("enable_key", "key_id", "keys are found by ARN"),
        ("cancel_key_deletion", "key_id", "keys are found by ARN"),
        ("schedule_key_deletion", "key_id pending_window_in_days", "keys are found by ARN"),
    ),
    *_of(
        "moto.iam.models:IAMBackend",
        ("get_policy", "policy_arn", "creates an AWS-managed policy first"),
        (
            "list_policies",
            "marker max_items only_attached path_prefix scope",
            "AWS-managed policies that nothing has created yet are listed",
        ),
        ("attach_role_policy", "policy_arn role_name", "creates an AWS-managed policy first"),
        ("attach_group_policy", "policy_arn group_name", "creates an AWS-managed policy first"),
        ("attach_user_policy", "policy_arn user_name", "creates an AWS-managed policy first"),
    ),
    *_of(
        "moto.iam.responses:IamResponse",
        ("delete_policy", "", "a policy that is attached cannot be deleted"),
        ("get_role", "", "the error says how to create the role"),
        ("simulate_principal_policy", "new", "SimulatePrincipalPolicy"),
        ("simulate_custom_policy", "new", "SimulateCustomPolicy"),
    ),
    *_of(
        "moto.sts.models:STSBackend",
        ("get_caller_identity", "access_key_id region", "credentials that the emulator issued are known"),
    ),
    *_of(
        "moto.sagemaker.models:SageMakerModelBackend",
        ("_get_resource_from_arn", "arn", "feature groups and resources without tags are found"),
        ("add_tags", "arn tags", "a key that is there gets the new value"),
        ("create_feature_group", "feature_group_name", "an offline store is not required"),
    ),
    *_of(
        "moto.sagemaker.models",
        ("load_pipeline_definition_from_s3", "", "a pipeline's definition stays the text that it is"),
    ),
    *_of(
        "moto.sagemaker.responses:SageMakerResponse",
        ("serialized", "action_result", "what a resource lacks is not described as an empty structure"),
        ("create_domain", "", "the answer has the DomainId; TagPropagation is kept"),
        ("describe_domain", "", "TagPropagation is described; the error is SageMaker's"),
        ("update_domain", "new", "UpdateDomain"),
        ("create_feature_group", "", "the online store is kept"),
        ("describe_feature_group", "", "the online store is described; a name that does not exist is refused"),
        ("delete_feature_group", "new", "DeleteFeatureGroup"),
        ("create_experiment", "", "tags are kept; a name that exists is refused"),
        ("create_trial", "", "tags are kept; a name that exists is refused"),
        ("create_trial_component", "", "tags are kept; a name that exists is refused"),
        ("create_notebook_instance_lifecycle_config", "", "tags are kept"),
        ("delete_experiment", "", "an experiment with trials stays"),
        ("delete_trial", "", "a trial with components stays"),
        ("delete_trial_component", "", "a component of a trial stays"),
        ("describe_experiment", "", "the display name and the description are kept"),
        ("describe_trial", "", "the display name is kept"),
        ("describe_trial_component", "", "the members are SageMaker's"),
        ("update_experiment", "new", "UpdateExperiment"),
        ("update_trial", "new", "UpdateTrial"),
        ("update_trial_component", "", "parameters and artifacts are merged"),
        ("list_experiments", "", "display names, order and times are honoured"),
        ("list_trials", "", "display names, order and times are honoured"),
        ("list_trial_components", "", "every filter is honoured; a component may be in several trials"),
        ("associate_trial_component", "", "a component may be in several trials"),
        ("disassociate_trial_component", "", "a component may be in several trials"),
        ("create_pipeline", "", "the first version is kept"),
        ("update_pipeline", "", "a version is kept for each definition"),
        ("create_model_package", "", "SkipModelValidation is kept; no version is used twice; an event is sent"),
        ("describe_model_package", "", "SkipModelValidation is described"),
        ("update_model_package", "", "what is not named is kept; an event is sent"),
        ("delete_model_package", "new", "DeleteModelPackage"),
        ("create_model_package_group", "", "a name that exists is refused"),
        ("describe_model_package_group", "", "the error is SageMaker's"),
        ("delete_model_package_group", "new", "DeleteModelPackageGroup"),
        ("put_model_package_group_policy", "new", "PutModelPackageGroupPolicy"),
        ("get_model_package_group_policy", "new", "GetModelPackageGroupPolicy"),
        ("delete_model_package_group_policy", "new", "DeleteModelPackageGroupPolicy"),
        *(
            (name, "new", "a resource that is stored and described as it came")
            for kind in KINDS
            for _, name in kind.list_operations()
        ),
        *(
            (f"{verb}_{noun}", "new", "lineage is stored")
            for verb, noun in (
                *((verb, "artifact") for verb in ("create", "describe", "update", "delete")),
                ("list", "artifacts"),
                ("add", "association"),
                ("delete", "association"),
                ("list", "associations"),
            )
        ),
        ("search", "", "every property of experiments and their parts is searched"),
    ),
)

# Methods that ``JournalledBackend`` overrides. The other methods of moto's S3 that change a bucket or an object are
# found by their names and parameters.
OVERRIDDEN = _of(
    "moto.s3.models:S3Backend",
    ("upload_part", "bucket_name multipart_id part_id value", "a part is a file"),
    (
        "upload_part_copy",
        "dest_bucket_name multipart_id part_id src_bucket_name src_key_name src_version_id start_byte end_byte",
        "a part is copied from file to file",
    ),
    ("create_bucket", "bucket_name", "the name of a new bucket is validated"),
    ("complete_multipart_upload", "bucket_name multipart_id body", "parts are joined from file to file"),
    ("create_multipart_upload", "bucket_name key_name", "an upload is kept with its bucket"),
    ("put_bucket_policy", "bucket_name policy", "policies are validated"),
    ("put_object", "bucket_name key_name value", "an object is a file; suspended versioning keeps older versions"),
    ("delete_object", "bucket_name key_name version_id", "suspended versioning keeps older versions"),
    ("copy_object", "src_key dest_bucket_name dest_key_name", "a copy is another name of the file"),
    ("list_objects", "bucket prefix delimiter marker max_keys", "a page has keys and common prefixes together"),
    (
        "list_objects_v2",
        "bucket prefix delimiter continuation_token start_after max_keys",
        "only the keys of one page are looked at",
    ),
    ("put_object_tagging", "key", "the last call of a put over HTTP"),
)

# For each attribute that is replaced now: moto's original, then the replacements, the latest last.
_stacks: dict[Replacement, list[Any]] = {}


def check_moto(version: str) -> None:
    """Check that the installed moto, of this version, has everything that is replaced.

    Raises:
        StartupError: something is missing or different.
    """
    if version in TESTED_VERSIONS:
        return
    tested = ", ".join(TESTED_VERSIONS)
    problems = [problem for row in (*REPLACED, *OVERRIDDEN) if (problem := row.find_problem())]
    if problems:
        raise StartupError(
            f"moto {version} does not fit this emulator: {'; '.join(problems)}. Install a version that it was tested "
            f"with ({tested}): pip install moto=={TESTED_VERSIONS[-1]}"
        )
    logger.warning("moto %s has what the emulator replaces, but was not tested with it; tested: %s.", version, tested)


def list_replaced() -> list[Replacement]:
    """List the replacements that are in effect."""
    return list(_stacks)


@contextmanager
def replaced(owner: Any, /, **replacements: Any) -> Iterator[None]:
    """Replace attributes of ``owner`` (a class, an object or a module of moto), given by name, inside the block.

    The same attribute can be replaced several times, and the replacements can end in any order. The latest remaining
    one is in effect; after the last one, moto's original is.

    Raises:
        LookupError: the table does not list an attribute.
    """
    with ExitStack() as closers:
        for name, replacement in replacements.items():
            closers.enter_context(_replace_attribute(owner, name, replacement))
        yield


@contextmanager
def _replace_attribute(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    row = next((row for row in REPLACED if row.name == name and row.find_owner() is owner), None)
    if row is None:
        raise LookupError(f"{owner}.{name} is not in the table of emulator/moto_services/replacements.py")
    stack = _stacks.setdefault(row, [vars(owner).get(name, _ABSENT)])
    stack.append(replacement)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        stack.remove(replacement)
        if stack[-1] is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, stack[-1])
        if len(stack) == 1:
            del _stacks[row]
