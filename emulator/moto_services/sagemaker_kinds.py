"""Table of the SageMaker resources that moto lacks and that are stored only."""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of resource, with the names that the API has for it.

    Attributes:
        name: in the operations, such as ``CodeRepository``; ``<name>Name`` and ``<name>Arn`` are its members.
        arn: the part of the ARN before the name.
        plural: in the name of the operation that lists it.
        listed: the member of that operation's answer.
        status: its status member and the only status that it ever has.
        in_domain: whether the name is unique in a domain only.
        updated: whether SageMaker can update it.
        has_properties: whether it has Properties, which an update merges; a delete is then answered with its ARN.
    """

    name: str
    arn: str
    plural: str
    listed: str
    status: tuple[str, str] | None = None
    in_domain: bool = False
    updated: bool = True
    has_properties: bool = False

    def list_operations(self) -> Iterator[tuple[str, str]]:
        """Yield the verb and the name, in snake case, of each operation."""
        for verb in ("create", "describe", "update", "delete"):
            if verb != "update" or self.updated:
                yield verb, f"{verb}_{_to_snake_case(self.name)}"
        yield "list", f"list_{_to_snake_case(self.plural)}"


def _to_snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


KINDS = (
    Kind("CodeRepository", "code-repository", "CodeRepositories", "CodeRepositorySummaryList"),
    Kind("Image", "image", "Images", "Images", ("ImageStatus", "CREATED")),
    Kind("AppImageConfig", "app-image-config", "AppImageConfigs", "AppImageConfigs"),
    Kind(
        "StudioLifecycleConfig",
        "studio-lifecycle-config",
        "StudioLifecycleConfigs",
        "StudioLifecycleConfigs",
        updated=False,
    ),
    Kind("UserProfile", "user-profile", "UserProfiles", "UserProfiles", ("Status", "InService"), in_domain=True),
    Kind("Space", "space", "Spaces", "Spaces", ("Status", "InService"), in_domain=True),
    Kind(
        "MonitoringSchedule",
        "monitoring-schedule",
        "MonitoringSchedules",
        "MonitoringScheduleSummaries",
        ("MonitoringScheduleStatus", "Scheduled"),
    ),
    Kind("Context", "context", "Contexts", "ContextSummaries", has_properties=True),
    Kind("Action", "action", "Actions", "ActionSummaries", has_properties=True),
)
