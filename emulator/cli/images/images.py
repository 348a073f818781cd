"""The ``images`` command: job images, listed and built ahead of use."""

import json
import time
from collections.abc import Callable, Collection
from contextlib import closing
from typing import Any

import click

from container_runtime.back_ends import load_back_end
from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from container_runtime.selection import AUTO
from emulator.cli.images.stored import remove_images
from emulator.cli.running import fail, json_option
from emulator.cli.setting_options import runtime_option
from emulator.cli.tables import format_table, wrap


@click.group()
def images() -> None:
    """List, build or remove the images that jobs run in.

    Without Docker, jobs run in virtual environments instead.
    """


images.add_command(remove_images)


@images.command("list")
@json_option
def list_images(*, as_json: bool) -> None:
    """List every image and whether it is built.

    The list has both Docker images and the environments of local processes.
    """
    on_docker = describe_docker_images()
    found: list[dict[str, Any]] = [
        {
            "name": definition.name,
            "repositories": list(definition.repositories),
            "docker": on_docker.get(definition.name, "no engine answers"),
            "process": _describe_environment(definition),
        }
        for definition in ImageCatalogue()
    ]
    if as_json:
        click.echo(json.dumps(found))
        return
    rows = [(image["name"], image["docker"], _shorten(image["process"])) for image in found]
    click.echo(format_table([("Image", "Docker", "Local processes"), *rows]))
    # An environment for older versions has a name of its own, by which it can be built.
    others = [
        f"{repository} runs {image['name']}"
        for image in found
        for repository in image["repositories"]
        if image["name"] in image["repositories"] and repository != image["name"]
    ]
    click.echo("\n" + "\n".join(wrap(f"{'; '.join(others)}.", "")) if others else "", nl=bool(others))


def _shorten(process: str) -> str:
    """Leave the folder of an environment to the command `cache`."""
    return "built" if process.startswith("/") else process


@images.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@runtime_option("What to build for; auto: docker if an engine is running, else process.")
@click.option(
    "--platform",
    metavar="PLATFORM",
    help="Platform of the images, such as linux/arm64. Must be that of the Docker engine.",
)
def build(names: tuple[str, ...], runtime: str, platform: str | None) -> None:
    """Build images that are missing or out of date.

    Without NAME, all images are built except those that few jobs need. ``emulator`` is the emulator itself;
    ``emulator:pytorch`` and ``emulator:full`` also contain the environments for jobs of PyTorch, or of all frameworks.
    """
    try:
        build_for(choose_back_end(runtime), names, platform)
    except ContainerRuntimeError as error:
        fail(str(error))


def choose_back_end(runtime: str) -> str:
    """Name a back end: as asked for, or ``docker`` where an engine answers, else ``process``."""
    if runtime != AUTO:
        return runtime
    from container_runtime.docker.daemon import describe_engine, explain_refused_engine

    if describe_engine() is not None:
        return "docker"
    if (refusal := explain_refused_engine()) is not None:
        click.echo(f"For local processes, not for Docker. {refusal}", err=True)
    return "process"


def build_for(back_end: str, names: Collection[str], platform: str | None = None) -> None:
    """Build what a back end lacks of the named images, or of all, and show how it goes.

    Raises:
        ContainerRuntimeError: there is no such image, or it cannot be built.
    """
    if platform is None:
        _show_progress(lambda report: load_back_end(back_end).build_images(names, report))
        return
    if back_end == "process":
        fail("--platform applies to Docker images only, not to local processes: leave it out.")
    from container_runtime.docker.images.image_build import build_images

    _show_progress(lambda report: build_images(names, report, platform=platform))


def _show_progress(build_all: Callable[[Callable[[str, str], None]], list[str]]) -> None:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    started = time.monotonic()
    progress = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), transient=True)
    tasks: dict[str, Any] = {}

    def report(name: str, text: str) -> None:
        if not tasks:
            progress.start()
        if name not in tasks:
            tasks[name] = progress.add_task("", total=None)
        progress.update(tasks[name], description=f"{name}: {text}")
        # Above the moving lines; where nothing moves (a log file) these are all that is seen.
        progress.console.print(f"{time.monotonic() - started:6.1f} s  {name}: {text}", highlight=False)

    try:
        built = build_all(report)
    finally:
        if tasks:
            progress.stop()
    seconds = time.monotonic() - started
    click.echo(f"Images are ready after {seconds:.1f} s; built: {', '.join(built) or 'none, all are up to date'}.")


def describe_docker_images() -> dict[str, str]:
    """State of every image on the engine, by its name; nothing where no engine answers."""
    from container_runtime.docker.border import connect
    from container_runtime.docker.images.image_build import find_size, find_stale, plan_builds

    try:
        api = connect()
    except EngineUnavailableError:
        return {}
    with closing(api):
        builds = plan_builds(ImageCatalogue())
        stale = find_stale(api, builds)
        states = {}
        for planned in builds:
            size = find_size(api, planned.name)
            state = "not built" if size is None else "to be rebuilt" if planned in stale else "up to date"
            states[planned.definition.name] = state if size is None else f"{state}, {size / 1e6:.0f} MB"
        return states


def _describe_environment(definition: ImageDefinition) -> str:
    from container_runtime.process.environments import locate_environment, needs_environment

    if not needs_environment(definition):
        return "this interpreter"
    environment = locate_environment(definition)
    return str(environment.folder) if environment.is_complete else "built when first needed"
