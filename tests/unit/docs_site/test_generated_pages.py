"""Tests of the generated docs pages: commands, variables, messages and order."""

import re
from pathlib import Path

import click
import pytest

from docs_site.commands import build_commands_page, list_commands
from docs_site.environment import READ_ELSEWHERE, build_environment_page
from docs_site.examples import build_examples_page
from docs_site.hooks import sort_pages
from docs_site.messages import REMEDIES, SECTIONS, Message, build_messages_page, find_messages
from docs_site.warnings import build_warnings_page
from emulator.cli.commands import main
from emulator.jobs.model.warnings import WARNING_KINDS, WARNINGS_HEADER
from emulator.settings import list_options

CHECKOUT = Path(__file__).parents[3]


def test_every_command_and_each_of_its_options_is_there() -> None:
    page = build_commands_page()
    commands = list(list_commands(main))
    assert ("images", "build") in [words for words, _ in commands]
    for words, command in commands:
        section = page.partition(f"# {' '.join(words)}\n")[2].partition("\n#")[0]
        assert f"smdebug-emulator {' '.join(words)}" in section
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden and parameter.name != "help":
                assert parameter.opts[-1] in section, (words, parameter.opts)


def test_every_variable_that_is_read_or_set_is_described() -> None:
    page = build_environment_page()
    for name, option in list_options().items():
        assert (f"`SMDEBUG_EMULATOR_{name.upper()}`" in page) == option.in_environment
    sources = [path.read_text(encoding="utf-8") for path in (CHECKOUT / "emulator/cli").rglob("*.py")]
    runtime = [path for path in (CHECKOUT / "container_runtime").rglob("*.py") if path.parent.name != "contract"]
    sources += [path.read_text(encoding="utf-8") for path in runtime]
    read = {name for text in sources for name in re.findall(r'os\.environ(?:\.get\(|\[)"([A-Z_]+)"', text)}
    assert {"DOCKER_HOST", "XDG_CACHE_HOME", "SHELL"} <= read <= READ_ELSEWHERE.keys()
    for name in ("AWS_ENDPOINT_URL", "SAGEMAKER_VALIDATE_ROLE", "AWS_SHARED_CREDENTIALS_FILE", "TRAINING_JOB_ARN"):
        assert f"| `{name}` |" in page


def test_every_warning_is_in_the_page_of_warnings() -> None:
    page = build_warnings_page()
    for code, kind in WARNING_KINDS.items():
        assert f"| `{code}` | {kind.meaning} | {kind.remedy} |" in page
    # The example reads the header as boto3 gives it.
    assert f'headers.get("{WARNINGS_HEADER}", "[]")' in page


@pytest.mark.slow
def test_every_message_has_its_remedy() -> None:
    messages = find_messages()
    assert len(messages) > 200
    assert {message.section for message in messages} >= {*SECTIONS, "A request is rejected"}
    assert all(message.remedy for message in messages)


def test_messages_of_aws_clients_are_on_the_page() -> None:
    page = build_messages_page()
    for text, remedy in REMEDIES["clients"].items():
        assert f"| {text} | {remedy} |" in page


def test_remedies_are_the_message_s_own_or_the_table_s() -> None:
    def find(text: str, refusal: str = "StartupError") -> str:
        return Message(text, refusal, "emulator/x.py").remedy

    assert (
        find("Nothing can listen on port 1 of 127.0.0.1: in use.") == REMEDIES["messages"]["Nothing can listen on port"]
    )
    assert find("The folder {x} is full: give another.") == "Give another."
    assert find("It is wrong.", "ScheduleError") == REMEDIES["refusals"]["ScheduleError"]
    assert find("It is wrong.", "UnheardOfError") == REMEDIES["refusals"]["others"]


def test_every_remedy_of_the_table_is_of_a_message_that_there_is() -> None:
    texts = [message.text for message in find_messages()]
    assert [words for words in REMEDIES["messages"] if not any(text.startswith(words) for text in texts)] == []


def test_what_a_command_or_the_start_refuses_has_a_remedy_of_its_own() -> None:
    """Not only the hint to look elsewhere: these are the first messages that anybody meets."""
    hints = {REMEDIES["refusals"]["fail"], REMEDIES["refusals"]["others"]}
    users = {"BadParameter", "EndpointError", "EmulatorAnswerError", "StartupError", "UsageError", "fail"}
    assert [each.text for each in find_messages() if each.refusal in users and each.remedy in hints] == []


def test_a_remedy_that_is_a_command_stays_as_it_is_typed() -> None:
    assert Message("X is missing: pip install x", "ImportError", "a.py").remedy == "pip install x"
    assert Message("There is no job: smdebug-emulator jobs lists them.", "fail", "a.py").remedy.startswith("smdebug-")


def test_the_page_of_messages_has_what_users_meet_first() -> None:
    page = build_messages_page()
    for words in (
        "Another emulator is using the state folder",
        "No emulator is running on the state folder",
        "No S3 objects found under S3 URL",
        "there is no such object: upload the source bundle",
        "SageMaker has no operation {name}",
    ):
        assert words in page.replace("\\", ""), words


def test_pages_come_into_their_groups_and_new_ones_at_the_end() -> None:
    order = sort_pages(
        ["decisions/0002-b.md", "decisions/0001-a.md", "index.md", "install.md", "study/new.md", "console.md"]
    )
    assert order == [
        {"Home": "index.md"},
        {"Get started": ["install.md"]},
        {"Look at results": ["console.md"]},
        {"Internals": ["decisions/0001-a.md", "decisions/0002-b.md"]},
        {"More": ["study/new.md"]},
    ]


def test_every_example_is_named() -> None:
    page = build_examples_page()
    for path in (CHECKOUT / "examples").iterdir():
        if (path / "README.md").exists():
            assert f"`examples/{path.name}/`" in page
    for notebook in (CHECKOUT / "examples/notebooks").glob("*.ipynb"):
        assert f"`{notebook.name}`" in page
