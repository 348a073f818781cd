"""Tests of the docs pages: every command and snippet runs, on one emulator."""

import ast
import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.gateway.protocol import load_operation
from sdk_compat.demo.training_job import build_request, stage_inputs
from tests.clients.page_blocks import CHECKOUT, DOCS, read_blocks, run_in, run_page
from tests.end_to_end.finished_jobs import wait_until_ended
from tests.running_emulator import RunningEmulator
from tests.unit.emulator.gateway.test_protocol import REQUEST

# Commands that stand beside the text, not in a block, and what runs each; `{page}` where a test reads them from it.
BESIDE_THE_TEXT = {
    "docs/trials.md": "tests/unit/test_docs_trials.py",
    "docs/rules.md": "tests/clients/test_docs_pages.py",
    "docs/install.md": "tests/unit/test_docs_install.py",
    "docs/swarm.md": "tests/end_to_end/test_swarm_losses.py",
    "docs/how_to/run_in_a_container.md": "tests/end_to_end/test_emulator_image.py",
    "examples/documents/README.md": "tests/clients/test_document_examples.py",
    "examples/estimator_project/README.md": "tests/clients/test_estimator_project.py",
    "examples/notebooks/README.md": "tests/clients/test_notebooks.py",
    "examples/sagemaker_v3/README.md": "tests/clients/test_sagemaker_v3_examples.py",
    "examples/rules/README.md": "tests/end_to_end/test_rule_examples.py",
    "examples/custom_container/README.md": "tests/end_to_end/test_custom_container.py",
}


def list_pages() -> list[str]:
    """Pages with commands or snippets that no other test runs: one that does names the page."""
    tests = [path.read_text(encoding="utf-8") for path in (CHECKOUT / "tests").rglob("test_*.py")]
    pages = [str(path.relative_to(DOCS)) for path in sorted(DOCS.rglob("*.md"))]
    shown = {page: [block for block in read_blocks(page) if block.language in ("sh", "python")] for page in pages}
    return [page for page in pages if shown[page] and not any(f"docs/{page}" in test for test in tests)]


# Those that take ten seconds and more.
BY_NIGHT = {
    "console.md",
    "how_to/bring_a_container.md",
    "how_to/demo_offline.md",
    "how_to/inject_faults.md",
    "how_to/reach_it_from_elsewhere.md",
    "how_to/test_in_ci.md",
    "how_to/use_it_from_python.md",
    "how_to/use_the_sdk.md",
    "how_to/write_a_rule.md",
    "profiler.md",  # its job is PyTorch's; unit/smdebug/profiler has what reads it
}
PAGES = list_pages()


def test_commands_beside_the_text_are_run_somewhere() -> None:
    """What the site shows, its page of the examples included, whose folders' READMEs it is made of."""
    written = [*DOCS.rglob("*.md"), *(CHECKOUT / "examples").rglob("README.md")]
    command = re.compile(r"^ {4}(?:smdebug-emulator|python|pip|pytest|docker|export|make|aws|eval) ", re.MULTILINE)
    found = {str(path.relative_to(CHECKOUT)) for path in written if command.search(path.read_text(encoding="utf-8"))}
    assert found == BESIDE_THE_TEXT.keys()
    assert all("def test_" in (CHECKOUT / test).read_text(encoding="utf-8") for test in BESIDE_THE_TEXT.values())
    assert set(PAGES) >= BY_NIGHT


@pytest.fixture(scope="module")
def docs_emulator(start_emulator: Callable[..., RunningEmulator], recorded_runs: Path) -> RunningEmulator:
    """With the run that pages name: s3://bucket/job/debug-output."""
    emulator = start_emulator("process", warm=False)  # by day it has no job
    s3 = emulator.client("s3")
    s3.create_bucket(Bucket="bucket")
    run = recorded_runs / "pt_save_all" / "run"
    for path in run.rglob("*"):
        if path.is_file():
            s3.put_object(Bucket="bucket", Key=f"job/debug-output/{path.relative_to(run)}", Body=path.read_bytes())
    return emulator


@pytest.fixture(scope="module")
def my_job(docs_emulator: RunningEmulator) -> None:
    """The job that pages name, which the profiler watched."""
    s3 = docs_emulator.client("s3")
    watched = {"ProfilerConfig": {"S3OutputPath": "s3://bucket/profile", "ProfilingIntervalInMilliseconds": 100}}
    stage_inputs(s3)
    request = build_request("my-job", {"steps": 100}) | watched
    del request["DebugRuleConfigurations"]
    docs_emulator.client("sagemaker").create_training_job(**request)
    wait_until_ended(docs_emulator, "my-job")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.nightly] if page in BY_NIGHT else ()) for page in PAGES]
)
def test_a_page_runs(page: str, docs_emulator: RunningEmulator, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if "my-job" in (DOCS / page).read_text(encoding="utf-8"):
        request.getfixturevalue("my_job")
    run_page(page, tmp_path, docs_emulator.state_dir)


@pytest.mark.parametrize("page", ["rules.md", "trials.md"])
def test_commands_on_a_run_on_s3(page: str, docs_emulator: RunningEmulator, tmp_path: Path) -> None:
    lines = re.findall(r"^    ((?:smdebug-emulator|python -m) .*s3://\S+.*)$", (DOCS / page).read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        prefix = "smdebug-emulator run -- " * line.startswith("python")
        done = run_in(tmp_path, ["bash", "-c", prefix + line], docs_emulator.state_dir)
        # A rule's verdict is its exit code.
        assert done.returncode in ((0, 2) if "rules run" in line else (0,)), f"{line}\n{done.stdout}\n{done.stderr}"


def read_rule_blocks() -> tuple[list[str], list[Any]]:
    """Indented blocks of the page of rules, and the requests among them."""
    text = (DOCS / "rules.md").read_text(encoding="utf-8")
    blocks = [textwrap.dedent(block) for block in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.MULTILINE)]
    return blocks, [json.loads(block) for block in blocks if block.lstrip().startswith("{")]


def test_the_json_of_the_rules() -> None:
    """The model of CreateTrainingJob takes each as it stands."""
    _, of_json = read_rule_blocks()
    operation = load_operation("CreateTrainingJob")
    assert len(of_json) > 20
    for document in of_json:
        configured = document["DebugRuleConfigurations"]
        assert operation.decode(json.dumps(REQUEST | document).encode())["DebugRuleConfigurations"] == configured


@pytest.mark.nightly  # the SDK takes seconds to import
def test_the_rules_of_the_sdk_are_those_of_the_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK takes each as it stands, and makes the members of the request beside it."""
    blocks, of_json = read_rule_blocks()
    of_sdk = [block for block in blocks if block.lstrip().startswith("from sagemaker.debugger")]
    assert len(of_sdk) == len(of_json) > 20
    (action,) = [block for block in blocks if block.lstrip().startswith("rule_configs.ActionList(")]
    namespace: dict[str, Any] = {}
    monkeypatch.setenv("SAGEMAKER_SUPPRESS_V2_WARNING", "1")
    exec("from sagemaker.debugger import rule_configs\nactions = " + action.strip(), namespace)
    for source, document in zip(of_sdk, of_json, strict=True):
        *statements, expression = ast.parse(source.strip()).body
        assert isinstance(expression, ast.Expr)
        exec(compile(ast.Module(statements, []), "docs/rules.md", "exec"), namespace)
        rule = eval(compile(ast.Expression(expression.value), "docs/rules.md", "eval"), namespace)
        (configured,) = document["DebugRuleConfigurations"]
        expected = {name: text for name, text in configured["RuleParameters"].items() if name in rule.rule_parameters}
        assert rule.rule_parameters["rule_to_invoke"] == configured["RuleParameters"]["rule_to_invoke"]
        assert {name: rule.rule_parameters[name] for name in expected} == expected


def test_the_snippets_of_the_rules(docs_emulator: RunningEmulator, tmp_path: Path) -> None:
    """They judge a run that has ended: NoMoreData is how they end."""
    indented = re.findall(r"(?:^    .*\n|^\n(?=    ))+", (DOCS / "rules.md").read_text(encoding="utf-8"), re.MULTILINE)
    snippets = [re.sub(r"^    ", "", text, flags=re.MULTILINE) for text in indented if "from smdebug" in text]
    assert len(snippets) == 2
    (tmp_path / "rule.py").write_text(snippets[1])
    program = ["smdebug-emulator", "run", "--", sys.executable, "-c", f"{snippets[0]}\n{snippets[1]}"]
    done = run_in(tmp_path, program, docs_emulator.state_dir)
    assert done.returncode == 0 or "NoMoreData" in done.stderr.splitlines()[-1], done.stderr
    assert run_in(tmp_path, [sys.executable, "rule.py"], docs_emulator.state_dir).returncode == 0
