import json
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import cast

import pytest

import emulator.operations
from docs_site.coverage import build_page
from emulator.gateway.authentication import ACCOUNT_HEADER
from emulator.gateway.sagemaker import SageMaker
from emulator.jobs import Jobs
from emulator.operations import find_operations


def test_the_operations_that_there_are() -> None:
    assert sorted(find_operations()) == [
        "AddTags",
        "CreateHyperParameterTuningJob",
        "CreatePipeline",
        "CreateProcessingJob",
        "CreateTrainingJob",
        "DeleteHyperParameterTuningJob",
        "DeleteProcessingJob",
        "DeleteTags",
        "DeleteTrainingJob",
        "DescribeHyperParameterTuningJob",
        "DescribePipeline",
        "DescribePipelineDefinitionForExecution",
        "DescribePipelineExecution",
        "DescribeProcessingJob",
        "DescribeTrainingJob",
        "DescribeTrialComponent",
        "GetSearchSuggestions",
        "ListHyperParameterTuningJobs",
        "ListPipelineExecutionSteps",
        "ListPipelineExecutions",
        "ListPipelineParametersForExecution",
        "ListPipelineVersions",
        "ListProcessingJobs",
        "ListTags",
        "ListTrainingJobs",
        "ListTrainingJobsForHyperParameterTuningJob",
        "ListTrialComponents",
        "RetryPipelineExecution",
        "Search",
        "SendPipelineExecutionStepFailure",
        "SendPipelineExecutionStepSuccess",
        "StartPipelineExecution",
        "StopHyperParameterTuningJob",
        "StopPipelineExecution",
        "StopProcessingJob",
        "StopTrainingJob",
        "UpdatePipeline",
        "UpdatePipelineVersion",
        "UpdateTrainingJob",
    ]


@pytest.fixture
def resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are of ``emulator.operations``, too."""
    monkeypatch.setattr(emulator.operations, "__path__", [*emulator.operations.__path__, str(tmp_path)])
    yield tmp_path
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(f"emulator.operations.{path.stem}", None)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "holds no operation"),
        ("from json import dumps", "holds no operation"),
        ("def fly_home(): ...", "fly_home is not an operation"),
        ("def fly_home(context, request): ...", "fly_home is not an operation"),
        ("def stop_training_job(request, context): ...", "another module has stop_training_job"),
    ],
)
def test_a_module_that_holds_no_operations_is_an_error(source: str, said: str, resources: Path) -> None:
    (resources / "vehicles.py").write_text(source)
    with pytest.raises(ValueError, match=said):
        find_operations()


def test_acronyms_in_names_are_the_models(resources: Path) -> None:
    (resources / "automatic.py").write_text("def describe_auto_ml_job(request, context): ...\n")
    (resources / "advisor.py").write_text("def stop_ai_recommendation_job(request, context): ...\n")
    assert {"DescribeAutoMLJob", "StopAIRecommendationJob"} <= find_operations().keys()


def test_a_new_function_is_a_new_operation(resources: Path) -> None:
    """Nothing but one function in one file: it answers requests, and the page of operations has it."""
    (resources / "models.py").write_text(
        "def list_models(request, context):\n"
        "    return {'Models': [_describe(context.region, request['NameContains'])]}\n\n\n"
        "def _describe(region, name):\n"
        "    return {'ModelName': name, 'ModelArn': f'arn:{region}:model/{name}', 'CreationTime': 0}\n"
    )
    assert "ListModels" in find_operations()
    assert "### ListModels\n\nEvery member is acted on." in build_page()
    sagemaker = SageMaker(lambda _account: cast("Jobs", None), lambda _account, _region, _arn: False)
    assert sagemaker.has("ListModels")
    body = json.dumps({"NameContains": "home"}).encode()
    credential = "Credential=key/20250101/eu-west-1/sagemaker/aws4_request"
    environ = {
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
        ACCOUNT_HEADER: "123456789012",
        "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0",
    }
    answer = sagemaker.answer("ListModels", environ)
    assert answer is not None
    assert json.loads(answer.body)["Models"][0]["ModelArn"] == "arn:eu-west-1:model/home"
