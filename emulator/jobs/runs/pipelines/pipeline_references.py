"""Values of a pipeline's references: parameters, properties of steps, files in S3."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from emulator.jobs.model.pipeline_definition import bind_parameters, follow_path, plan_steps, resolve
from emulator.jobs.model.pipeline_execution import PipelineExecution


class References:
    """The references in one execution's definition."""

    def __init__(
        self,
        execution: PipelineExecution,
        describe: Callable[[Mapping[str, Any]], dict[str, Any]],
        connect: Callable[[str], Any],
    ) -> None:
        """Read the definition.

        Args:
            execution: The execution; only what does not change is read of it.
            describe: Returns a step's properties.
            connect: Returns a client of a service.
        """
        self._execution = execution
        self._describe = describe
        self._connect = connect
        self._definitions = {name: step.definition for name, step in plan_steps(execution.definition).items()}

    def resolve(self, value: Any) -> Any:
        """Copy arguments of a step with their references replaced by values.

        Raises:
            LookupError: A reference leads to nothing.
            ValueError: A file in S3 is not JSON.
        """
        return resolve(value, self._find, self._read_json)

    def _find(self, path: str) -> Any:
        head, _, rest = path.partition(".")
        if head == "Parameters":
            given = self._execution.request.get("PipelineParameters", ())
            return bind_parameters(self._execution.definition, given)[rest]
        if head == "Execution":
            return self._describe_execution()[rest]
        name, _, inner = rest.partition(".")
        return follow_path(self._describe(self._definitions[name]), inner)

    def _describe_execution(self) -> dict[str, Any]:
        started = datetime.fromtimestamp(self._execution.creation_ms / 1000, tz=UTC).isoformat()
        return {
            "PipelineExecutionId": self._execution.name,
            "PipelineExecutionArn": self._execution.arn,
            "PipelineName": self._execution.request["PipelineName"],
            "PipelineArn": self._execution.pipeline_arn,
            "StartDateTime": started,
            "CurrentDateTime": started,
        }

    def _read_json(self, source: Mapping[str, Any]) -> Any:
        """Read the value of a Std:JsonGet, from a JSON file in S3 or from a step's property file."""
        uri = source.get("S3Uri")
        if uri is None:
            _, step, _, name = source["PropertyFile"]["Get"].split(".", 3)
            definition = self._definitions[step]
            (file,) = [each for each in definition["PropertyFiles"] if each["PropertyFileName"] == name]
            outputs = self._describe(definition)["ProcessingOutputConfig"]
            folder = follow_path(outputs, f"Outputs['{file['OutputName']}'].S3Output.S3Uri")
            uri = f"{folder}/{file['FilePath']}"
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return follow_path(json.load(self._connect("s3").get_object(Bucket=bucket, Key=key)["Body"]), source["Path"])
