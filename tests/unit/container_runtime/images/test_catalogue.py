"""Tests of the image catalogue: names, versions and folders."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from container_runtime.images.catalogue import (
    ImageCatalogue,
    ImageName,
    describe_substitution,
    local_name,
    parse_image_name,
)
from container_runtime.runtime import ContainerRuntimeError, ImageNotFoundError, VersionRefusedError

ACCOUNT = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("lambda", ImageName("lambda", "lambda")),
        ("a/b:1.0", ImageName("a/b", "b", tag="1.0")),
        ("host:5000/a/b", ImageName("host:5000/a/b", "b")),
        ("host:5000/b:x@sha256:00", ImageName("host:5000/b", "b", tag="x", digest="sha256:00")),
        (
            f"{ACCOUNT}/pytorch-training:2.3.0",
            ImageName(f"{ACCOUNT}/pytorch-training", "pytorch-training", tag="2.3.0"),
        ),
    ],
)
def test_name_is_split(image: str, expected: ImageName) -> None:
    assert parse_image_name(image) == expected


@pytest.mark.parametrize("image", ["", "a/", ":tag", "a b", "a/:x"])
def test_text_that_is_not_a_name(image: str) -> None:
    with pytest.raises(ImageNotFoundError, match="is not an image name"):
        parse_image_name(image)


FIRST = "abcdefghijklmnopqrstuvwxyz0123456789"
part = st.builds(str.__add__, st.sampled_from(FIRST), st.text(f"{FIRST}_.-", max_size=10))


@given(st.lists(part, min_size=1, max_size=4), st.none() | part)
def test_parts_make_the_name_again(path: list[str], tag: str | None) -> None:
    image = "/".join(path) + (f":{tag}" if tag else "")
    assert parse_image_name(image) == ImageName("/".join(path), path[-1], tag=tag)


def test_ours_answer_to_what_the_sdks_ask_for() -> None:
    catalogue = ImageCatalogue()
    for repository in ("pytorch-training", "sagemaker-debugger-rules", "sagemaker-debugger-rule-evaluator", "lambda"):
        found = catalogue.find(f"{ACCOUNT}/{repository}:latest")
        assert found is not None
        definition, note = found
        assert (local_name(definition), note) == (f"smdebug-emulator/{repository}:latest", None)
    assert catalogue.find(f"{ACCOUNT}/my-own-training:1") is None
    assert catalogue.find("my-own-training:1") is None


def test_rule_images_hold_no_framework() -> None:
    for definition in ImageCatalogue():
        if definition.name.startswith("sagemaker-debugger-rule"):
            assert not [line for line in definition.requirements if line.startswith(("torch", "tensorflow", "xgboost"))]


def test_the_names_in_a_message_are_those_of_jobs_with_the_most_similar() -> None:
    catalogue = ImageCatalogue()
    names, hint = catalogue.describe_repositories(f"{ACCOUNT}/pytorch-trainig:2.13.0").split(". ")
    assert {*catalogue.repositories} - {*names.split(", ")} == {"emulator", "lambda"}
    assert hint == "Did you mean pytorch-training?"
    assert catalogue.describe_repositories("my-own:1") == f"{names}."


@pytest.mark.parametrize(
    ("tag", "noted"),
    [
        ("", False),
        (":latest", False),
        (":2.13.0-cpu-py311", False),
        (":2.13.0-cpu", False),
        (":2.13.0", False),
        (":2.13", True),
        (":2.3.0-cpu-py311", True),
        (":2.13.0-gpu-py311", True),
        ("@sha256:0123", True),
    ],
)
def test_another_version_is_noted(tag: str, noted: bool) -> None:
    image = f"{ACCOUNT}/pytorch-training{tag}"
    found = ImageCatalogue().find(image)
    assert found is not None
    _, substitution = found
    assert (substitution is not None) is noted
    if noted:
        assert tag.lstrip(":@") in (substitution or "")
    assert ImageCatalogue().describe_substitution(image) == substitution


@pytest.mark.parametrize(
    ("tag", "brief"),
    [
        ("2.3.0-cpu-py311", "asked 2.3.0, runs 2.13.0"),
        ("2.13-gpu-py312-cu130", "asked 2.13, runs 2.13.0"),
        ("2.13.0-gpu-py312", "asked 2.13.0-gpu-py312, runs 2.13.0-cpu-py311"),
    ],
)
def test_both_versions_are_reported_first(tag: str, brief: str) -> None:
    (newest,) = ImageCatalogue().select(["pytorch-training"])
    newest = replace(newest, version="2.13.0-cpu-py311")
    text = describe_substitution(newest, parse_image_name(f"pytorch-training:{tag}"))
    assert text is not None
    assert text.startswith(f"{brief}. The request is for pytorch-training:{tag}; ")


@pytest.mark.parametrize("image", ["my-own-training:1", "no name"])
def test_what_is_none_of_ours_is_substituted_by_nothing(image: str) -> None:
    assert ImageCatalogue().describe_substitution(image) is None


@pytest.mark.parametrize(
    ("requested", "runs"),
    [
        ("pytorch-training:1.13.1-cpu-py39", "2.3.1"),
        ("pytorch-training:2.1.0-gpu-py310", "2.3.1"),
        ("pytorch-training:2.3.0-cpu-py311", "2.3.1"),
        ("pytorch-training:2.4.0-cpu-py311", "2.3.1"),
        ("pytorch-training:2.5.1-cpu-py311", "2.6.0"),
        ("pytorch-training:2.8.0-cpu-py312", "2.13.0"),
        ("pytorch-training", "2.13.0"),
        ("sagemaker-xgboost:1.3-1", "1.7.6"),
        ("sagemaker-xgboost:1.7-1", "1.7.6"),
        ("sagemaker-xgboost:3.0-5", "3.2.0"),
        ("xgboost:latest", "3.2.0"),
        ("sagemaker-scikit-learn:1.0-1-cpu-py3", "1.1-1"),
        ("sagemaker-scikit-learn:1.2-1-cpu-py3", "1.2-1"),
        ("huggingface-pytorch-training:2.1.0-transformers4.36.0-gpu-py310", "2.3.1-transformers4.46.1"),
        ("huggingface-pytorch-training:2.3.0-transformers4.46.1-gpu-py311", "2.3.1-transformers4.46.1"),
    ],
)
def test_what_runs_for_versions_of_aws(requested: str, runs: str) -> None:
    found = ImageCatalogue().find(f"{ACCOUNT}/{requested}")
    assert found is not None
    assert (found[0].version or "").startswith(f"{runs}-")


def write_image(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "image.toml").write_text(text)
    return folder


def test_definition_is_read_whole(tmp_path: Path) -> None:
    write_image(
        tmp_path / "deep" / "one",
        'name = "one"\nrepositories = ["uno"]\nversion = "1"\nrequirements = ["six"]\nwith_smdebug = true\n'
        'entrypoint = ["python"]\n[environment]\nA = "b"\n',
    )
    (definition,) = ImageCatalogue(tmp_path)
    assert definition.repositories == ("one", "uno")
    assert (definition.version, definition.requirements, definition.with_smdebug) == ("1", ("six",), True)
    assert definition.environment == {"A": "b"}
    assert definition.folder == tmp_path / "deep" / "one"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('repositories = ["x"]', "name is missing"),
        ('name = "x"\ncommand = []', "unknown key 'command'"),
        ('name = "x"\nentrypoint = "python"', "entrypoint is 'python'"),
        ('name = "x"\nentrypoint = [1]', r"entrypoint is \[1\]"),
        ('name = "x"\nwith_smdebug = "yes"', "with_smdebug is 'yes'"),
        ('name = "x"\n[links]\na = 1', "links is {'a': 1}"),
        ("name =", "cannot be read"),
    ],
)
def test_wrong_definition_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    write_image(tmp_path / "wrong", text)
    with pytest.raises(ContainerRuntimeError, match=f"image.toml.*{message}"):
        ImageCatalogue(tmp_path)


def test_two_that_answer_to_one_name(tmp_path: Path) -> None:
    write_image(tmp_path / "a", 'name = "a"')
    write_image(tmp_path / "b", 'name = "b"\nrepositories = ["a"]')
    with pytest.raises(ContainerRuntimeError, match="'a' is already answered"):
        ImageCatalogue(tmp_path)


def test_no_definition_at_all(tmp_path: Path) -> None:
    with pytest.raises(ContainerRuntimeError, match=r"no image\.toml: install smdebug-emulator again"):
        ImageCatalogue(tmp_path)


OLDER = """
name = "x"
version = "3.1.0-cpu"
requirements = ["six"]
[[environments]]
version = "1.5.2-cpu"
below = "2"
requirements = ["six==1.1"]
[[environments]]
version = "2.4.0-cpu"
below = "2.10"
python = "3.11"
requirements = ["six==1.2"]
"""


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        (":0.9", "x-1.5"),
        (":1.15.2-gpu-py3", "x-1.5"),
        (":2.0", "x-2.4"),
        (":2.9.3-cpu", "x-2.4"),
        (":2.10", "x"),
        (":3.1.0-cpu", "x"),
        (":9", "x"),
        (":latest", "x"),
        ("", "x"),
        ("@sha256:0123", "x"),
    ],
)
def test_a_version_gets_the_nearest_environment(tmp_path: Path, tag: str, name: str) -> None:
    write_image(tmp_path / "x", OLDER)
    catalogue = ImageCatalogue(tmp_path)
    found = catalogue.find(f"{ACCOUNT}/x{tag}")
    assert found is not None
    definition, note = found
    assert definition.name == name
    if note is not None and tag.startswith(":"):
        assert tag[1:] in note
        assert "3.1.0-cpu, 1.5.2-cpu, 2.4.0-cpu" in note
    assert (note is None) == (tag in (":latest", "", ":3.1.0-cpu"))
    # Only the newest is built ahead, and any by its name.
    assert [found.name for found in catalogue.select(())] == ["x"]
    (named,) = catalogue.select([name])
    assert named is definition


def test_an_environment_has_its_own_requirements_and_python(tmp_path: Path) -> None:
    write_image(tmp_path / "x", OLDER)
    (chosen,) = ImageCatalogue(tmp_path).select(["x-2.4"])
    assert (chosen.requirements, chosen.python, chosen.repositories) == (("six==1.2",), "3.11", ("x",))
    assert local_name(chosen) == "smdebug-emulator/x-2.4:latest"


@pytest.mark.parametrize(
    ("tag", "is_refused"), [("2.4.7", False), ("2.4", False), ("3", False), ("2.5", True), ("1.15", True)]
)
def test_strict_versions_refuse_what_is_not_there(tmp_path: Path, tag: str, is_refused: bool) -> None:
    write_image(tmp_path / "x", OLDER)
    catalogue = ImageCatalogue(tmp_path, strict=True)
    if is_refused:
        with pytest.raises(ImageNotFoundError, match=rf"has version {tag}.*--strict-versions.*2\.4\.0-cpu"):
            catalogue.find(f"x:{tag}")
    else:
        assert catalogue.find(f"x:{tag}") is not None


def test_only_a_refused_version_is_an_error_before_the_job_runs(tmp_path: Path) -> None:
    write_image(tmp_path / "x", OLDER)
    catalogue = ImageCatalogue(tmp_path, strict=True)
    with pytest.raises(VersionRefusedError, match=r"has version 2\.5"):
        catalogue.describe_substitution("x:2.5")
    assert catalogue.describe_substitution("no name") is None


def test_an_older_scikit_learn_is_the_nearest_that_this_python_has() -> None:
    catalogue = ImageCatalogue()
    for tag, name in (
        ("0.23-1-cpu-py3", "sagemaker-scikit-learn-1.1"),
        ("1.0-1-cpu-py3", "sagemaker-scikit-learn-1.1"),
        ("1.2-1-cpu-py3", "sagemaker-scikit-learn-1.2"),
        ("1.4-2-cpu-py3", "sagemaker-scikit-learn"),
        ("latest", "sagemaker-scikit-learn"),
    ):
        found = catalogue.find(f"{ACCOUNT}/sagemaker-scikit-learn:{tag}")
        assert found is not None
        assert found[0].name == name
        assert (found[1] is None) is (tag in {"1.2-1-cpu-py3", "latest"})


def test_an_environment_without_its_border(tmp_path: Path) -> None:
    write_image(tmp_path / "x", 'name = "x"\n[[environments]]\nversion = "1"\nrequirements = []\n')
    with pytest.raises(ContainerRuntimeError, match=r"image\.toml: below is missing in one of environments"):
        ImageCatalogue(tmp_path)


@pytest.mark.parametrize("version", ["1.15", "2.4.1-cpu", "2.11"])
def test_a_tensorflow_that_no_environment_holds_is_refused_with_what_there_is(version: str) -> None:
    there_are = r"2\.21\.0.*2\.12\.1.*2\.15\.1"
    with pytest.raises(ImageNotFoundError, match=rf"has version {version}.*--strict-versions.*{there_are}"):
        ImageCatalogue(strict=True).find(f"{ACCOUNT}/tensorflow-training:{version}")


def test_keras_2_is_what_older_tensorflows_get() -> None:
    catalogue = ImageCatalogue()
    for version, held in (
        ("1.15.2-cpu-py36", "2.12"),
        ("2.4.1", "2.12"),
        ("2.11", "2.12"),
        ("2.12.1-gpu", "2.12"),
        ("2.13", "2.15"),
        ("2.15.0-gpu-py310", "2.15"),
        ("2.16", "2.21"),
        ("2.19", "2.21"),
    ):
        found = catalogue.find(f"{ACCOUNT}/tensorflow-training:{version}")
        assert found is not None
        assert str(found[0].version).startswith(held)
        assert version in str(found[1])
