"""Operations of SageMaker that the Python SDKs, the AWS CLI and Terraform call.

``python -m docs_site.client_operations FOLDER`` prints those that the source in a folder, such as an SDK's, calls. The
file client_operations.json has the lists of the SDKs that were looked through.
"""

import json
import re
import sys
from pathlib import Path

from botocore import xform_name

from emulator.service_model import load_service_model

# A call of a client, a method that is named as text, or a resource class of SageMaker Core. What is called on a
# resource is not recognised.
_CLIENT_CALL = re.compile(r"client\s*\.\s*([a-z0-9_]+)\(|[\"']([a-z0-9_]+)[\"']")
_RESOURCE_CALL = re.compile(r"\b([A-Z]\w+)\.(create|get|get_all)\(")
# The list of what Terraform calls for ``tests/clients/terraform``; ``tests/clients/test_terraform.py`` compares.
TERRAFORM = "Terraform's hashicorp/aws 5.100.0"
# The list of what ``tests/clients/aws_cli/sagemaker.sh`` calls; ``tests/clients/test_aws_cli_walk.py`` compares.
AWS_CLI = "AWS CLI 1 and 2, a walk"
_VERBS = {"create": "Create{}", "get": "Describe{}", "get_all": "List{}s"}
# SageMaker Core has a method for each operation of the model: what it could call says nothing.
_GENERATED = ("resources.py",)


def find_called(folder: Path) -> list[str]:
    """Find the operations that Python source below a folder calls, by the names of the model."""
    names = {xform_name(name): name for name in load_service_model().operation_names}
    found: set[str | None] = set()
    for path in folder.rglob("*.py"):
        if path.name in _GENERATED:
            continue
        source = path.read_text(encoding="utf-8", errors="replace")
        found |= {names.get(match[1] or match[2]) for match in _CLIENT_CALL.finditer(source)}
        found |= {_VERBS[match[2]].format(match[1]) for match in _RESOURCE_CALL.finditer(source)}
    return sorted(name for name in names.values() if name in found)


def read_lists() -> dict[str, list[str]]:
    """Return the operations of each SDK, by its name and version."""
    lists: dict[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text())
    return lists


if __name__ == "__main__":
    sys.stdout.write("\n".join(find_called(Path(sys.argv[1]))) + "\n")
