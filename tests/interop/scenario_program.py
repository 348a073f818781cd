"""Scripts of one framework, run and read with whichever smdebug is imported.

python scenario_program.py write MODULE FOLDER NAME...    runs scripts of the module; the run of each is FOLDER/<name>
python scenario_program.py read MODULE FOLDER...  prints what this smdebug reads from the runs, a line of JSON a folder

A module has SCENARIOS (scripts by name), PREAMBLE (a script that is run before each), and `build_names(out)`, which
returns what a script finds as its global names. It may have `clean_up()`, called after each script, and HIDDEN, a regex
of names that upstream cannot have. What a script puts into `seen` is compared as well.
"""

import importlib
import json
import logging
import re
import struct
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

# Asked of every run; an answer is a value or the name of an exception.
QUESTIONS = {
    **{
        f"trial.tensor_names({arguments})": f"sorted(trial.tensor_names({arguments}))"
        for arguments in (
            "step=0",
            "step=3",
            "step=77",
            "mode=modes.TRAIN",
            "mode=modes.EVAL",
            "mode=modes.PREDICT",
            "step=0, mode=modes.TRAIN",
            "step=1, mode=modes.EVAL",
            "regex='.*loss.*'",
            "regex=['weight', 'bias']",
            "regex='('",
            "collection='losses'",
            "collection='missing'",
            "collection='losses', mode=modes.EVAL",
            "collection='losses', step=0, mode=modes.TRAIN",
            "regex='a', collection='losses'",
        )
    },
    **{
        question: question
        for question in (
            "trial.steps(show_incomplete_steps=True)",
            "trial.steps('TRAIN')",
            "trial.has_tensor('missing')",
            "trial.tensor('missing')",
            "trial.collection('losses').name",
            "trial.collection('missing')",
            "trial.num_workers",
            "trial.mode(77)",
            "trial.mode_step(77)",
            "trial.mode_modestep(0)",
            "trial.global_step(modes.TRAIN, 1)",
            "trial.global_step(modes.EVAL, 0)",
            "trial.global_step(modes.TRAIN, 77)",
            "trial.wait_for_steps([0])",
            "trial.wait_for_steps([77])",
            "trial.has_passed_step(0)",
            "trial.has_passed_step(1)",
            "trial.has_passed_step(77)",
            "trial.has_passed_step(0, modes.EVAL)",
            "{name: sorted(found.include_regex) for name, found in trial.collections().items()}",
        )
    },
}
OF_TENSOR = (
    "tensor.steps(modes.TRAIN)",
    "tensor.steps(modes.EVAL)",
    "tensor.steps(modes.PREDICT)",
    "tensor.steps(show_incomplete_steps=True)",
    "tensor.value(77)",
    "tensor.value(tensor.steps()[-1] + 1)",
    "tensor.value(0, mode=modes.EVAL)",
    "tensor.value(0, worker='worker_9')",
    "tensor.shape(77)",
    "tensor.prev_steps(10, 2)",
    "tensor.prev_steps(10, 2, modes.TRAIN)",
    "tensor.workers(tensor.steps()[0])",
    "tensor.reduction_value(tensor.steps()[0], 'mean')",
    "tensor.reduction_value(tensor.steps()[0], 'l1')",
    "tensor.reduction_value(tensor.steps()[0], 'l2', abs=True)",
    "tensor.reduction_value(tensor.steps()[0], 'missing')",
    "tensor.reduction_value(77, 'mean')",
    "len(tensor.values())",
    "list(tensor.values(modes.EVAL))",
)
MOST_TENSORS = 6


def simplify(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): simplify(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [simplify(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(simplify(item) for item in value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if hasattr(value, "name") and hasattr(value, "value"):
        return str(value.name)
    try:
        # The same computation may round otherwise with another numpy.
        return float(f"{float(value):.5g}")
    except (TypeError, ValueError):
        return type(value).__name__


def answer(question: str, names: dict[str, Any]) -> Any:
    try:
        return simplify(eval(question, names))
    except Exception as error:  # noqa: BLE001 - what upstream raises is an answer, too
        return f"raises {type(error).__name__}"


def describe_files(run: Path) -> dict[str, Any]:
    """Return the files of a run, and what its index and collections files say, whichever library reads them."""
    described: dict[str, Any] = {"names": [], "indexes": {}, "collections": {}, "boards": {}}
    for path in sorted(found for found in run.rglob("*") if found.is_file()):
        name = str(path.relative_to(run))
        if "tensorboard" in name:
            name = str(path.relative_to(run).parent)
            described["boards"].setdefault(name, []).extend(read_board(path.read_bytes()))
        elif path.parent.parent.name == "index":
            index = json.loads(path.read_text())
            described["indexes"][path.name] = {
                "meta": index["meta"],
                "tensors": sorted({found["tensorname"] for found in index["tensor_payload"] or []}),
                "shapes": sorted(
                    (found["tensorname"], found["originalname"], found["shape"])
                    for found in index["shape_payload"] or []
                ),
            }
        elif path.parent.name == "collections" or path.parent.parent.name == "collections":
            described["collections"][path.name] = json.loads(path.read_text())
        if name not in described["names"]:
            described["names"].append(name)
    described["boards"] = {name: sorted(set(shown)) for name, shown in described["boards"].items()}
    return described


def read_board(content: bytes) -> list[str]:
    """Return step and tag of each summary of a TensorBoard file, and `graph` for each graph."""
    shown, at = [], 0
    while at < len(content):
        (size,) = struct.unpack_from("<Q", content, at)
        event = read_fields(content[at + 12 : at + 12 + size])
        at += size + 16
        shown += ["graph"] * (4 in event)
        for _, value in read_fields(event[5], repeated=True) if 5 in event else ():
            shown.append(f"{read_fields(value)[1].decode()} at {event.get(2, 0)}")
    return shown


def read_fields(message: bytes, *, repeated: bool = False) -> Any:
    """Return the fields of a protobuf message by number, or all of them as pairs."""
    fields: list[tuple[int, Any]] = []
    at = 0

    def read_number() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(message):
        field, kind = divmod(read_number(), 8)
        if kind == 0:
            fields.append((field, read_number()))
            continue
        size = {1: 8, 5: 4}.get(kind) or read_number()
        fields.append((field, message[at : at + size]))
        at += size
    return fields if repeated else dict(fields)


def write(module: Any, folder: Path, chosen: list[str]) -> None:
    agent: Any = importlib.import_module("smdebug.core.utils").error_handling_agent
    found: dict[str, Any] = {}
    for name in chosen:
        script, out = module.SCENARIOS[name], folder / name
        # One failure turns upstream off for the rest of its process.
        agent.disable_smdebug, agent.hook = False, None
        names = module.build_names(str(out))
        names["seen"] = {}
        error: str | None = None
        try:
            exec(compile(module.PREAMBLE + script, name, "exec"), names)
        except Exception as raised:  # noqa: BLE001 - what upstream raises is an answer, too
            error = type(raised).__name__
            # Seen when a comparison is looked into by hand.
            sys.stderr.write(f"{name}: {traceback.format_exc()}")
        for hook in [names["hook"]] if "hook" in names else []:
            try:
                hook.close()
            except Exception as raised:  # noqa: BLE001
                error = f"{error} and at close {type(raised).__name__}"
        names["smd"].del_hook()
        getattr(module, "clean_up", lambda: None)()
        found[name] = {"raises": error, "seen": simplify(names["seen"]), "files": describe_files(out)}
    (folder / "written.json").write_text(json.dumps(found))


def read(module: Any, folder: Path) -> dict[str, Any]:
    hidden = re.compile(getattr(module, "HIDDEN", "(?!)"))
    read_run = importlib.import_module("read_with_upstream").read
    from smdebug import modes
    from smdebug.trials import create_trial

    logging.disable()
    read_runs = {}
    for run in sorted(folder.iterdir()):
        if not (run / "collections").is_dir():
            continue
        names: dict[str, Any] = {"modes": modes}
        try:
            found = read_run(str(run))
            names["trial"] = trial = create_trial(str(run))
        except Exception as error:  # noqa: BLE001
            read_runs[run.name] = {"raises": type(error).__name__}
            continue
        found["answers"] = {question: answer(code, names) for question, code in QUESTIONS.items()}
        for name in sorted(name for name in found["tensors"] if not hidden.search(name))[:MOST_TENSORS]:
            names["tensor"] = trial.tensor(name)
            found["answers"].update({f"{name}: {code}": answer(code, names) for code in OF_TENSOR})
        read_runs[run.name] = found
    return read_runs


def import_scenarios(module: str) -> Any:
    """Import a module of this folder by the name that the tests have for it.

    The checkout is not on the path of upstream's interpreter, since it has a smdebug of its own.
    """
    folder = Path(__file__).parent
    for name, path in (("tests", folder.parent), ("tests.interop", folder)):
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(path)]
    return importlib.import_module(f"tests.interop.{module}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    command, scenarios, *folders = sys.argv[1:]
    module = import_scenarios(scenarios)
    if command == "write":
        write(module, Path(folders[0]), folders[1:])
    if command == "write_and_read":
        write(module, Path(folders[0]), folders[2:])
        folders = folders[:2]
    if command != "write":
        found = [json.dumps(read(module, Path(folder))) for folder in folders]
        sys.stdout.write("".join(f"\n{answers}" for answers in found))
