"""Input channels: S3 objects placed in /opt/ml/input/data/<channel>.

In FastFile mode, the files are hard links to the files in which the emulator's S3 keeps the objects. A channel of a
terabyte is ready immediately, takes no disk space, and only the data that the script uses is read.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from emulator.exceptions import NoSuchBucket, NoSuchKey, ValidationException
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.staging.hosts import Host, list_receivers
from emulator.jobs.staging.s3_paths import parse_request_uri, resolve_relative_key
from emulator.moto_services.s3.objects import ObjectStore, S3Uri, parse_s3_uri

_Entry = TypeVar("_Entry")
_Placed = TypeVar("_Placed")
# A manifest is a list with one object.
_MANIFEST_DEPTH = 2
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def find_mode(channel: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """Return the input mode of a channel: File, FastFile or Pipe."""
    mode: str = channel.get("InputMode") or request["AlgorithmSpecification"]["TrainingInputMode"]
    return mode


def reads_pipe(channel: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Return whether the channel's data are read from pipes."""
    return find_mode(channel, request) == "Pipe"


def check_objects(request: Mapping[str, Any], region: str, object_store: ObjectStore) -> None:
    """Check, when the job is created, that each channel's prefix has an object.

    Args:
        request: the request of CreateTrainingJob, validated against the service model.
        region: region of the request.
        object_store: the S3 with the data.

    Raises:
        ValidationException: an S3Uri is invalid, its bucket does not exist, or no object is below the prefix.
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
    """Download every channel of ``host`` to ``folder/<channel>``, or link it at ``linked/<channel>`` in FastFile mode.

    If n hosts get a channel that is ShardedByS3Key, each of them gets every n-th object.

    Args:
        request: the request of CreateTrainingJob, checked by ``check_training_job``.
        object_store: the S3 with the data.
        folder: the host's /opt/ml/input/data.
        check_stop: called before each object; an exception from it ends the download.
        host: the host that gets the channels.
        hosts: all hosts of the job.
        linked: the folder for channels in FastFile mode, which get hard links to S3's files instead of copies. None if
            the container could write to these files.

    Returns:
        The names of the channels in FastFile mode that were nevertheless downloaded, in whole or in part.

    Raises:
        RequestFailure: a bucket, key or prefix does not exist, or a key cannot be a file name.
    """
    name, downloaded = None, []
    try:
        for channel in request.get("InputDataConfig") or ():
            name = channel["ChannelName"]
            receivers = list_receivers(channel, hosts)
            if host not in receivers or reads_pipe(channel, request):
                continue
            source = channel["DataSource"]["S3DataSource"]
            objects = shuffle(list_objects(source, object_store), channel)[find_share(source, host, receivers)]
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


def find_share(source: Mapping[str, Any], host: Host, receivers: Sequence[Host]) -> slice:
    """Return the slice of an S3 source's objects that ``host`` gets: of one that is ShardedByS3Key, every n-th."""
    if source.get("S3DataDistributionType") == "ShardedByS3Key":
        return slice(receivers.index(host), None, len(receivers))
    return slice(None)


def shuffle(entries: Sequence[_Entry], channel: Mapping[str, Any], epoch: int = 0) -> list[_Entry]:
    """Return a copy of ``entries``. If the channel has a ShuffleConfig, each epoch has a different order."""
    shuffled = list(entries)
    if configuration := channel.get("ShuffleConfig"):
        Random(f"{configuration['Seed']} {epoch}").shuffle(shuffled)  # noqa: S311 - the same every time is what is wanted
    return shuffled


def download_source(
    source: Mapping[str, Any], object_store: ObjectStore, folder: Path, check_stop: Callable[[], None], share: slice
) -> None:
    """Download the ``share`` of an S3 source's objects to ``folder``; see ``download_channels``."""
    _fill(list_objects(source, object_store)[share], object_store.download, folder, check_stop, source["S3Uri"])


def list_objects(source: Mapping[str, Any], object_store: ObjectStore) -> Sequence[tuple[str, str, str]]:
    """List bucket, key and relative path of every object of a prefix or a manifest.

    Raises:
        RequestFailure: there is no object, or the manifest is missing or invalid.
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
    """Call ``place`` with each object's bucket, key and path below ``folder``; return the results."""
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
        raise RequestFailure(
            f"{uri} has an object whose key is also the folder of another ({error.filename})."
        ) from error
    return placed


def _list_prefix(object_store: ObjectStore, location: S3Uri, uri: str) -> Iterator[tuple[str, str, str]]:
    """Yield bucket, key and relative path of every object below a prefix."""
    found = [entry.key for entry in object_store.list(location.bucket, location.key) if not entry.key.endswith("/")]
    if not found:
        raise RequestFailure(f"No object is at {uri}, or below it. Upload the data, or correct the S3Uri.")
    for key in found:
        yield location.bucket, key, _cut_prefix(key, location.key)


def _cut_prefix(key: str, prefix: str) -> str:
    """Return a key's path relative to the folder of ``prefix``; a prefix that ends within a name keeps that name."""
    if prefix.endswith("/") or not prefix:
        return key[len(prefix) :]
    if key.startswith(prefix + "/"):
        return key[len(prefix) + 1 :]
    return key[prefix.rfind("/") + 1 :]


def _read_manifest(object_store: ObjectStore, location: S3Uri, uri: str) -> Iterator[tuple[str, str, str]]:
    """Yield bucket, key and relative path of the objects in ``[{"prefix": "s3://…/"}, "a.csv", "b.csv"]``."""
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
    """Split an S3 URI from a manifest.

    Args:
        uri: the URI.
        where: its position in the manifest, for error messages.

    Raises:
        RequestFailure: it is not an S3 URI, or not valid text for a key.
    """
    encode_manifest_text(uri, where)
    return parse_request_uri(uri, where)


def encode_manifest_text(text: str, where: str) -> bytes:
    """Encode a text from a manifest as UTF-8.

    Args:
        text: the text.
        where: its position in the manifest, for error messages.

    Raises:
        RequestFailure: it contains half of a surrogate pair, which is valid in JSON but not in UTF-8.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RequestFailure(
            f"{where} is not text in UTF-8: at character {error.start} is half of a surrogate pair."
        ) from error


def find_deep_nesting(text: str, depth: int) -> int:
    """Return the position of the first bracket that opens more than ``depth`` levels of JSON; -1 if there is none."""
    level = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if level > depth:
            return found.start()
    return -1
