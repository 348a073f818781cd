"""Input channels: S3 objects placed in /opt/ml/input/data/<channel>.

In FastFile mode what is there are second names of the very files in which S3 keeps the objects: a channel of a terabyte
is there at once, takes no room, and is read as far as the script reads it.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.exceptions import NoSuchBucket, NoSuchKey, ValidationException
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.staging.hosts import list_receivers
from emulator.jobs.staging.s3_paths import parse_request_uri, resolve_relative_key
from emulator.moto_services.s3.objects import parse_s3_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from emulator.jobs.staging.hosts import Host
    from emulator.moto_services.s3.objects import ObjectStore, S3Uri

_Entry = TypeVar("_Entry")
_Placed = TypeVar("_Placed")
# A manifest is a list with one object.
_MANIFEST_DEPTH = 2
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def find_mode(channel: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """File, FastFile or Pipe."""
    mode: str = channel.get("InputMode") or request["AlgorithmSpecification"]["TrainingInputMode"]
    return mode


def reads_pipe(channel: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether the channel's data come through pipes."""
    return find_mode(channel, request) == "Pipe"


def check_objects(request: Mapping[str, Any], region: str, object_store: ObjectStore) -> None:
    """Refuse a channel whose prefix has no object, when the job is created.

    Args:
        request: CreateTrainingJob's, validated against the model.
        region: of the request.
        object_store: where the data is.

    Raises:
        ValidationException: the S3Uri is none, nothing is below the prefix, or its bucket does not exist.
    """
    for channel in request.get("InputDataConfig") or ():
        source = channel["DataSource"].get("S3DataSource") or {}
        if source.get("S3DataType") != "S3Prefix":
            continue
        uri = source["S3Uri"]
        try:
            location = parse_s3_uri(uri)
        except ValueError as error:
            raise ValidationException(f"S3Uri of the channel {channel['ChannelName']!r}: {error}") from error
        if not (object_store.head_bucket(location.bucket) and object_store.list(location.bucket, location.key)):
            raise ValidationException(
                f'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure that the bucket '
                f"exists in the selected region ({region}), that objects exist under that S3 prefix, and that the role "
                f'"{request["RoleArn"]}" has "s3:ListBucket" permissions on bucket "{location.bucket}".'
            )


def download_channels(
    request: Mapping[str, Any],
    object_store: ObjectStore,
    folder: Path,
    check_stop: Callable[[], None],
    host: Host,
    hosts: Sequence[Host],
    linked: Path | None = None,
) -> list[str]:
    """Fill ``folder/<channel>`` for every channel that ``host`` gets, ``linked/<channel>`` where that is lazy.

    Of a channel that is ShardedByS3Key, it gets every n-th object, where n hosts get the channel.

    Args:
        request: CreateTrainingJob's, checked by ``check_training_job``.
        object_store: where from.
        folder: /opt/ml/input/data.
        check_stop: called between objects; what it raises ends the download.
        host: whose folder it is.
        hosts: all hosts of the job.
        linked: for channels in FastFile mode: they get second names of the files that S3 has, and no byte is copied.
            None where the container cannot be kept from writing to them.

    Returns:
        The channels in FastFile mode that were downloaded all the same, wholly or in part.

    Raises:
        RequestFailure: a bucket, key or prefix that is not there; a key that cannot be a file.
    """
    name, downloaded = None, []
    try:
        for channel in request.get("InputDataConfig") or ():
            name = channel["ChannelName"]
            receivers = list_receivers(channel, hosts)
            if host not in receivers or reads_pipe(channel, request):
                continue
            source, share = channel["DataSource"]["S3DataSource"], find_share(channel, host, receivers)
            objects = shuffle(list_objects(source, object_store), channel)[share]
            is_fast = find_mode(channel, request) == "FastFile"
            if is_fast and linked is not None:
                (folder / name).mkdir(parents=True, exist_ok=True)
                is_lazy = all(_fill(objects, object_store.link, linked / name, check_stop, source["S3Uri"]))
            else:
                _fill(objects, object_store.download, folder / name, check_stop, source["S3Uri"])
                is_lazy = False
            downloaded += [name] if is_fast and not is_lazy else []
    except RequestFailure as error:
        raise RequestFailure(f"Data download of the channel {name!r} failed: {error}") from error
    return downloaded


def find_share(channel: Mapping[str, Any], host: Host, receivers: Sequence[Host]) -> slice:
    """Which of a channel's objects ``host`` gets."""
    if is_sharded(channel["DataSource"]["S3DataSource"]):
        return slice(receivers.index(host), None, len(receivers))
    return slice(None)


def shuffle(entries: Sequence[_Entry], channel: Mapping[str, Any], epoch: int = 0) -> list[_Entry]:
    """Copy ``entries``, in another order for each epoch where the channel has a ShuffleConfig."""
    shuffled = list(entries)
    if configuration := channel.get("ShuffleConfig"):
        Random(f"{configuration['Seed']} {epoch}").shuffle(shuffled)  # noqa: S311 - the same every time is what is wanted
    return shuffled


def is_sharded(source: Mapping[str, Any]) -> bool:
    """Whether each host gets its share of what an S3 source holds, and not all of it."""
    return source.get("S3DataDistributionType") == "ShardedByS3Key"


def download_source(
    source: Mapping[str, Any], object_store: ObjectStore, folder: Path, check_stop: Callable[[], None], share: slice
) -> None:
    """Fill ``folder`` with the ``share`` of what an S3 source holds; see ``download_channels``."""
    _fill(list_objects(source, object_store)[share], object_store.download, folder, check_stop, source["S3Uri"])


def list_objects(source: Mapping[str, Any], object_store: ObjectStore) -> Sequence[tuple[str, str, str]]:
    """Bucket, key and relative path of every object of a prefix or a manifest.

    Raises:
        RequestFailure: there is none, or the manifest is not there or none.
    """
    uri = source["S3Uri"]
    location = parse_request_uri(uri, "S3Uri")
    read = _read_manifest if source["S3DataType"] == "ManifestFile" else _list_prefix
    try:
        return list(read(object_store, location, uri))
    except (NoSuchBucket, NoSuchKey) as error:
        raise RequestFailure(f"{uri}: {error}") from error


def _fill(
    objects: Sequence[tuple[str, str, str]],
    place: Callable[[str, str, Path], _Placed],
    folder: Path,
    check_stop: Callable[[], None],
    uri: str,
) -> list[_Placed]:
    """Let ``place`` put each object where it belongs, and return what it said."""
    folder.mkdir(parents=True, exist_ok=True)
    placed = []
    try:
        for bucket, key, relative in objects:
            check_stop()
            path = resolve_relative_key(folder, relative)
            path.parent.mkdir(parents=True, exist_ok=True)
            placed.append(place(bucket, key, path))
    except (NoSuchBucket, NoSuchKey) as error:
        raise RequestFailure(f"{uri}: {error}") from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise RequestFailure(f"{uri} holds one key that is the folder of another ({error.filename}).") from error
    return placed


def _list_prefix(object_store: ObjectStore, location: S3Uri, uri: str) -> Iterator[tuple[str, str, str]]:
    """Bucket, key and relative path of every object below a prefix."""
    found = [entry.key for entry in object_store.list(location.bucket, location.key) if not entry.key.endswith("/")]
    if not found:
        raise RequestFailure(f"No object is at {uri}, or below it. Upload the data, or correct the S3Uri.")
    for key in found:
        yield location.bucket, key, _cut_prefix(key, location.key)


def _cut_prefix(key: str, prefix: str) -> str:
    """Return what follows the folder that ``prefix`` names; a prefix that ends within a name keeps the whole name."""
    if prefix.endswith("/") or not prefix:
        return key[len(prefix) :]
    if key.startswith(prefix + "/"):
        return key[len(prefix) + 1 :]
    return key[prefix.rfind("/") + 1 :]


def _read_manifest(object_store: ObjectStore, location: S3Uri, uri: str) -> Iterator[tuple[str, str, str]]:
    """Bucket, key and relative path of every object in ``[{"prefix": "s3://…/"}, "a.csv", "b.csv"]``."""
    content = object_store.get(location.bucket, location.key)
    try:
        manifest = json.loads(content)
    except ValueError as error:
        raise RequestFailure(f"The manifest {uri} is not JSON: {error}.") from error
    except RecursionError as error:
        position = find_deep_nesting(content.decode(json.detect_encoding(content), "replace"), _MANIFEST_DEPTH)
        raise RequestFailure(f"The manifest {uri} is nested too deeply at character {position}.") from error
    match manifest:
        case [{"prefix": str() as prefix}, *names] if names and all(isinstance(name, str) for name in names):
            for number, name in enumerate(names, start=1):
                entry = parse_manifest_uri(prefix + name, f"Entry {number} of the manifest {uri}")
                yield entry.bucket, entry.key, name
        case _:
            raise RequestFailure(
                f"The manifest {uri} has to be a list of an object with a prefix and at least one name: "
                '[{"prefix": "s3://bucket/folder/"}, "name", ...].'
            )


def parse_manifest_uri(uri: str, where: str) -> S3Uri:
    """Split a URI that a manifest holds at ``where``.

    Raises:
        RequestFailure: it is no S3 URI, or no text that a key can be.
    """
    encode_manifest_text(uri, where)
    return parse_request_uri(uri, where)


def encode_manifest_text(text: str, where: str) -> bytes:
    """Encode a text that a manifest holds at ``where``.

    Raises:
        RequestFailure: it holds half of a surrogate pair, which JSON can write and UTF-8 cannot.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RequestFailure(
            f"{where} is no text in UTF-8: at character {error.start} is half of a surrogate pair."
        ) from error


def find_deep_nesting(text: str, depth: int) -> int:
    """Return the position of the first bracket of JSON that opens more than ``depth`` levels; -1 where none does."""
    level = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if level > depth:
            return found.start()
    return -1
