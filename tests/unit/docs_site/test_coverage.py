import re
from functools import cache
from pathlib import Path

import pytest

from docs_site.coverage import ACTED_ON, ECHOED, build_page, list_members
from emulator.operations import find_operations
from emulator.operations.members import find_members

ROOT = Path(__file__).parents[3]
OPERATIONS = sorted(find_operations())


def test_the_page_is_what_the_installed_model_and_the_operations_say() -> None:
    written = (ROOT / "docs" / "coverage.md").read_text()
    assert written == build_page(), "run: python -m docs_site.coverage > docs/coverage.md"


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_member_is_left_out(name: str) -> None:
    members = list_members(name)
    assert {member.fate.partition(":")[0] for member in members} <= {ACTED_ON, ECHOED, "refused"}, "nothing is dropped"
    assert len({member.path for member in members}) == len(members)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_speak_of_members_that_the_model_has(name: str) -> None:
    declared = find_members(find_operations()[name])
    paths = {member.path for member in list_members(name)}
    # A tuning job's definition lacks some members of a training job's request.
    of_training = {
        f"TrainingJobDefinition{s}.{member.path}" for s in ("", "s") for member in list_members("CreateTrainingJob")
    }
    assert {*(declared.acts_on or ()), *declared.refuses} <= paths | of_training


@cache
def find_named() -> set[str]:
    """What may be a member, of each line of the emulator but the tables of what it acts on and refuses."""
    tables = re.compile(r"^(?:(?:ACTS_ON|REFUSES) = |@declare_members\()(?:.*[({]\n(?s:.*?)\n[})]+|.*)$", re.MULTILINE)
    sources = [tables.sub("", path.read_text()) for path in (ROOT / "emulator").rglob("*.py")]
    return {each for source in sources for each in re.findall(r"\"([A-Z]\w+)\"", source)}


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_acted_on_is_named_in_the_source(name: str) -> None:
    """A member that no line of the emulator names cannot be acted on."""
    declared = find_members(find_operations()[name]).acts_on or ()
    unnamed = [path for path in declared if path.rpartition(".")[2] not in find_named()]
    assert unnamed == []


def test_a_member_of_each_fate() -> None:
    fates = {member.path: member.fate for member in list_members("CreateTrainingJob")}
    assert fates["DebugHookConfig.CollectionConfigurations.CollectionName"] == ACTED_ON
    assert fates["VpcConfig.Subnets"] == ECHOED
    assert fates["SessionChainingConfig"].startswith("refused: where it is enabled")
    assert fates["InputDataConfig.DataSource.FileSystemDataSource.FileSystemId"].startswith("refused: ")
