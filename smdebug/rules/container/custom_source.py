"""Custom rules: a user's code from S3, imported, with its rule class."""

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.parameters import boolean, convert_parameters, integer, number
from smdebug.rules.rule import Rule
from smdebug.storage.output import is_s3_path
from smdebug.storage.s3 import S3Objects, build_s3_client

_MODULE = "smdebug_custom_rule"
REQUIREMENTS = "requirements.txt"


def download_source(source_s3_uri: str, folder: Path) -> list[Path]:
    """Download a rule's code into a folder: .py files, or all files under prefixes.

    A requirements.txt beside a .py file is downloaded too.

    Args:
        source_s3_uri: location of the code; several locations are separated by commas.
        folder: an empty folder.

    Returns:
        The .py files, sorted.

    Raises:
        SMDebugValueError: the location is not on S3, has no .py file, or an object's key leads outside the folder.
        SMDebugError: S3 cannot be read.
    """
    if not is_s3_path(source_s3_uri.strip()):
        raise SMDebugValueError(
            f"source_s3_uri is {source_s3_uri!r}: upload the rule's file, and give s3://bucket/prefix/file.py."
        )
    client = build_s3_client()
    found: list[Path] = []
    for uri in re.split(r",\s*(?=s3://)", source_s3_uri.strip()):
        found += _download(uri, folder, client)
    sources = sorted(path for path in found if path.suffix == ".py")
    if not sources:
        raise SMDebugValueError(f"source_s3_uri {source_s3_uri} holds no .py file.")
    return sources


def _download(uri: str, folder: Path, client: Any) -> list[Path]:
    if not uri.endswith(".py"):
        objects = S3Objects(uri, client)
        keys = [key for key in objects.list_keys("/") if not key.endswith("/")]
        return [_store(f"{uri}{key}", objects.get(key), folder, key.lstrip("/")) for key in keys]
    found = []
    parent = uri.rpartition("/")[0]
    for each in (uri, f"{parent}/{REQUIREMENTS}"):
        try:
            content = S3Objects(each, client).get("")
        except FileNotFoundError as error:
            if each == uri:
                raise SMDebugValueError(f"source_s3_uri {uri} does not exist.") from error
        else:
            found.append(_store(each, content, folder, each.rpartition("/")[2]))
    return found


def _store(uri: str, content: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise SMDebugValueError(f"The object {uri} cannot be stored: its key leaves the folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def import_class(sources: list[Path], folder: Path, rule_to_invoke: str, hint: str = "") -> type:
    """Import the file that defines a class; it can import the files beside it.

    Args:
        sources: the files.
        folder: of all of them.
        rule_to_invoke: name of the class.
        hint: added to the error where no file defines the class; a sentence with a space before it.

    Raises:
        SMDebugValueError: no file defines such a class.
        Exception: whatever the file raises when it is imported.
    """
    defined = {name: path for path in sources for name in _list_classes(path)}
    path = defined.get(rule_to_invoke)
    if path is None:
        known = ", ".join(sorted(defined)) or "none"
        raise SMDebugValueError(f"The source has no class {rule_to_invoke!r}. The classes there are: {known}.{hint}")
    for place in (folder, path.parent):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    # A separate name, so that a file named like a module of smdebug or of Python replaces neither.
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    found = getattr(module, rule_to_invoke)
    if not isinstance(found, type):
        raise SMDebugValueError(f"{rule_to_invoke} in {path.name} is not a rule: derive it from smdebug.rules.Rule.")
    return found


def check_arguments(rule_class: type[Rule], given: Mapping[str, object]) -> None:
    """Check that the constructor accepts all given parameters, and that no required one is missing.

    Raises:
        SMDebugValueError: all problems in one message.
    """
    accepted = list_arguments(rule_class)
    problems = []
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        problems += [f"there is no parameter {name!r}" for name in given if name not in accepted]
    problems += [
        f"parameter {name} is missing"
        for name, parameter in accepted.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and name not in given
    ]
    if problems:
        known = ", ".join(accepted) or "none"
        raise SMDebugValueError(f"Rule {rule_class.__name__}: {'; '.join(problems)}. Its parameters are: {known}.")


def convert_arguments(rule_class: type[Rule], given: Mapping[str, str]) -> dict[str, Any]:
    """Convert the parameters that the constructor annotates as numbers or truth values.

    For `def __init__(self, base_trial, threshold: float = 1e-7)` the text is converted to a number; an invalid text is
    an error that names the parameter. Parameters without an annotation, or with another one, remain text.

    Raises:
        SMDebugValueError: values that do not fit their annotations, all in one message.
    """
    annotated = {name: parameter.annotation for name, parameter in list_arguments(rule_class).items() if name in given}
    declared = []
    for name, annotation in annotated.items():
        kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        if kind == "float":
            declared.append(number(name, 0.0))
        elif kind == "int":
            declared.append(integer(name, 0))
        elif kind == "bool":
            declared.append(boolean(name, default=False))
    chosen = {parameter.name: given[parameter.name] for parameter in declared}
    return {**given, **convert_parameters(rule_class.__name__, declared, chosen)}


def list_arguments(rule_class: type[Rule]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a rule's constructor by name, without the first one, which is the trial.

    Raises:
        SMDebugValueError: the constructor has no parameter for the trial.
    """
    _, *rest = inspect.signature(rule_class.__init__).parameters.items()
    if not rest:
        raise SMDebugValueError(f"{rule_class.__name__}.__init__ takes no trial: make base_trial its first argument.")
    return dict(rest[1:])


def _list_classes(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes(), filename=path.name)
    except (SyntaxError, ValueError) as error:
        raise SMDebugValueError(f"{path.name} is not Python that can be imported: {error}") from error
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
