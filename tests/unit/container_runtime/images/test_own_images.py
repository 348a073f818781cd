"""Tests of the images of the user's own that ``start --image`` names."""

from pathlib import Path

import pytest

from container_runtime.back_ends import RuntimeOptions, load_back_end
from container_runtime.docker.images.images_in_place import ImagesInPlace
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.own_images import check_repositories, read_own_images
from container_runtime.runtime import ContainerRuntimeError

ACCOUNT = "763104351884.dkr.ecr.us-east-1.amazonaws.com"


def test_the_longest_version_that_serves_a_request_is_taken(tmp_path: Path) -> None:
    listed = tmp_path / "images.txt"
    listed.write_text("# AWS's\n\npytorch-training:2.3 = my/dlc:2.3\npytorch-training:2=my/dlc:2\n")
    in_place = ImagesInPlace(read_own_images([f"@{listed}", "sagemaker-xgboost=registry:5000/xgb@sha256:00"]))
    for asked, runs in (
        (f"{ACCOUNT}/pytorch-training:2.3.0-cpu-py311", "my/dlc:2.3"),
        (f"{ACCOUNT}/pytorch-training:2.13.0-cpu-py311", "my/dlc:2"),
        ("sagemaker-xgboost:1.7-1", "registry:5000/xgb@sha256:00"),
        ("sagemaker-xgboost", "registry:5000/xgb@sha256:00"),
    ):
        found = in_place.resolve(asked)
        assert found is not None
        assert (found.requested, found.local) == (asked, runs)
        assert found.substitution == f"The request asks for {asked}; {runs}, which --image names, runs in its place."
    for other in (f"{ACCOUNT}/pytorch-training:1.13.1", "pytorch-training", "tensorflow-training:2.3"):
        assert in_place.resolve(other) is None
    assert ImagesInPlace().resolve("no name") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["pytorch-training"], "give NAME=IMAGE"),
        (["=my/dlc"], "give NAME=IMAGE"),
        (["pytorch-training:=my/dlc"], "give NAME=IMAGE"),
        (["pytorch-training:cpu=my/dlc"], "give NAME=IMAGE"),
        (["pytorch-training=my dlc"], "is not an image name"),
        (["@/nowhere/images.txt"], "the file cannot be read"),
        (["pytorch-training:2.3=a", "pytorch-training:2.3=b"], "two images for pytorch-training:2.3: give one"),
    ],
)
def test_what_is_given_wrongly_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(ContainerRuntimeError, match=message):
        read_own_images(given)


def test_a_name_that_no_image_here_has_is_refused() -> None:
    check_repositories(read_own_images(["sagemaker-pytorch=my/dlc"]), ImageCatalogue())
    with pytest.raises(ContainerRuntimeError, match="my-training=my/dlc: no image of that name is built here"):
        check_repositories(read_own_images(["my-training=my/dlc"]), ImageCatalogue())


@pytest.mark.parametrize("name", ["process", "swarm"])
def test_back_ends_that_cannot_run_them_refuse_them(name: str, tmp_path: Path) -> None:
    options = RuntimeOptions(tmp_path, own_images=read_own_images(["pytorch-training=my/dlc:2.3"]))
    with pytest.raises(ContainerRuntimeError, match=r"^--image pytorch-training=my/dlc:2\.3 needs --runtime docker: "):
        load_back_end(name).open(options)
