"""The ``cache`` command and ``images remove``: stored files, sizes, removal."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.installation import locate_cache
from container_runtime.images.wheelhouse import remove_wheels
from container_runtime.process.stored_environments import (
    list_environments,
    measure_folder,
    remove_environment,
    remove_folder,
)
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from emulator.cli.running import fail, json_option, read_settings, state_dir_option, yes_option
from emulator.cli.tables import count_of, format_size, format_table, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from container_runtime.docker.images.stored_images import StoredImage
    from container_runtime.process.stored_environments import StoredFolder

_OUTDATED, _CURRENT = "outdated", "current"
_BACK_ENDS = ("docker", "process")


@click.group(invoke_without_command=True)
@state_dir_option
@json_option
@click.pass_context
def cache(context: click.Context, state_dir: Path | None, *, as_json: bool) -> None:
    """Show what the emulator stores on this machine, and its size.

    This includes jobs, S3 objects, environments, wheels and Docker images.
    """
    if context.invoked_subcommand is not None:
        return
    entries = list(_list_entries(read_settings(state_dir).state_dir))
    if as_json:
        click.echo(json.dumps(entries))
        return
    click.echo(format_table([("What", "Size", "State"), *map(_build_row, entries)]))
    click.echo()
    for label, where in dict.fromkeys((each["label"], each["where"]) for each in entries if each["label"]):
        click.echo("\n".join(wrap(where, " " * 14, label)))
    outdated = sum(each["bytes"] for each in entries if each["state"] == _OUTDATED)
    if outdated:
        click.echo(f"\n{format_size(outdated)} are outdated: smdebug-emulator cache remove outdated")


@cache.command("remove")
@click.argument("what", nargs=-1, required=True, type=click.Choice((_OUTDATED, "wheels", "clients")))
@yes_option
def remove_from_cache(what: tuple[str, ...], *, yes: bool) -> None:
    """Remove files that can be fetched or built again.

    \b
    outdated  environments and Docker images of earlier versions
    wheels    downloaded packages; the next build downloads them again
    clients   files of env and run

    Use reset or prune for jobs and objects, and images remove for an image.
    """  # noqa: D301 - click wants the character itself
    environments: list[StoredFolder] = []
    images: list[StoredImage] = []
    if _OUTDATED in what:
        environments = [each for each in _list_environments() if each.is_outdated]
        images = [each for each in _list_images() if each.is_outdated]
    folders: dict[Path, Callable[[], None]] = {}
    if "wheels" in what:
        folders[locate_cache() / "wheels"] = partial(remove_wheels, locate_cache())
    if "clients" in what:
        folders[_locate_clients()] = partial(remove_folder, _locate_clients())
    present = {folder: remove for folder, remove in folders.items() if folder.exists()}
    _remove(environments, images, present, yes=yes)


@click.command("remove")
@click.argument("names", nargs=-1, metavar="NAME...", required=True)
@click.option("--runtime", type=click.Choice(_BACK_ENDS), help="Remove only for this runtime  [default: for both].")
@yes_option
def remove_images(names: tuple[str, ...], runtime: str | None, *, yes: bool) -> None:
    """Remove images from Docker and their local environments.

    NAME is as in images list. The next job that needs one builds it again.
    """
    try:
        chosen = {definition.name for definition in ImageCatalogue().select(names)}
    except ContainerRuntimeError as error:
        fail(str(error))
    environments = [each for each in _list_environments() if each.image in chosen and runtime != "docker"]
    images = [each for each in _list_images() if each.image in chosen and runtime != "process"]
    _remove(environments, images, {}, yes=yes)


def _remove(
    environments: list[StoredFolder],
    images: list[StoredImage],
    folders: Mapping[Path, Callable[[], None]],
    *,
    yes: bool,
) -> None:
    """Remove all of them after asking, and say what became of it."""
    listed = [
        *(f"environment of {each.image}, {format_size(each.size)}: {each.folder}" for each in environments),
        *(f"Docker image {each.reference}, {format_size(each.size)}" for each in images),
        *(f"{folder}, {format_size(measure_folder(folder))}" for folder in folders),
    ]
    if not listed:
        click.echo("Nothing to remove.")
        return
    click.echo("\n".join(listed))
    if not yes:
        if not sys.stdin.isatty():
            fail(f"Nothing was removed: give --yes to remove {count_of(len(listed), 'item')} without confirmation.", 2)
        click.confirm(f"Remove {count_of(len(listed), 'item')}?", abort=True)
    removals: list[Callable[[], None]] = [
        *(partial(remove_environment, each) for each in environments),
        *(partial(_remove_image, each) for each in images),
        *folders.values(),
    ]
    errors = []
    for remove in removals:
        try:
            remove()
        except ContainerRuntimeError as error:
            errors.append(str(error))
    click.echo(f"Removed {count_of(len(removals) - len(errors), 'item')}.")
    if errors:
        fail("\n".join(errors))


def _remove_image(stored: StoredImage) -> None:
    from container_runtime.docker.images.stored_images import remove_image

    remove_image(stored)


def _list_entries(state_dir: Path) -> Iterator[dict[str, Any]]:
    if state_dir.exists():
        yield _describe("jobs, S3, logs", measure_folder(state_dir), "", "State", str(state_dir))
    environments = str(locate_cache() / "venvs")
    for each in _list_environments():
        state = _OUTDATED if each.is_outdated else _CURRENT
        yield _describe(f"environment {each.image}", each.size, state, "Environments", environments)
    wheels = locate_cache() / "wheels"
    if wheels.exists():
        yield _describe("wheels", measure_folder(wheels), "", "Wheels", str(wheels))
    clients = _locate_clients()
    if clients.exists():
        yield _describe("files of clients", measure_folder(clients), "", "Clients", str(clients))
    for image in _list_images():
        state = _OUTDATED if image.is_outdated else "to be rebuilt" if image.is_stale else _CURRENT
        name = image.reference.removeprefix("sha256:")
        where = "on the engine; they share layers, and take less than the sum"
        yield _describe(f"Docker {name if '/' in name else name[:12]}", image.size, state, "Docker", where)


def _describe(what: str, size: int, state: str, label: str, where: str) -> dict[str, Any]:
    return {"what": what, "bytes": size, "state": state, "label": label, "where": where}


def _build_row(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["what"], f"{format_size(entry['bytes']):>9}", entry["state"]


def _list_environments() -> list[StoredFolder]:
    return list_environments(ImageCatalogue(), locate_cache())


def _list_images() -> list[StoredImage]:
    """List this project's images on the engine; none where no engine answers."""
    from container_runtime.docker.images.stored_images import list_images

    try:
        return list_images()
    except EngineUnavailableError:
        return []


def _locate_clients() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "smdebug-emulator", "clients")
