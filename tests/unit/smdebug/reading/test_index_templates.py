import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.reading.index_files import parse_index
from smdebug.reading.index_templates import _MOST_TEMPLATES, IndexTemplates
from smdebug.reading.step_index import Layouts, StepIndex
from tests.unit.smdebug.runs import RunMaker

NAMES = ["loss", 'quoted", "crc32c": 12, "', "gradient/ü", "\\", '"tensor_payload": [']


def describe(index: StepIndex) -> tuple[Any, ...]:
    return index.layout, index.mode, index.mode_step, index.event_file_name, list(index.checksums or ())


def parse(content: bytes, layouts: Layouts) -> StepIndex:
    return layouts.pack(parse_index(content, 0, "worker_0", "here"))


def write(entries: list[dict[str, Any]], meta: dict[str, Any] | None = None, **more: Any) -> bytes:
    head = {"mode": "TRAIN", "mode_step": 4, "event_file_name": "events/0/a.tfevents", **(meta or {})}
    return json.dumps({"meta": head, "tensor_payload": entries, **more}).encode()


def write_shape_first(name: str) -> bytes:
    content = json.loads(write([entry()]))
    shapes = [{"tensorname": name, "originalname": name, "shape": [1]}]
    return json.dumps({"meta": content["meta"], "shape_payload": shapes, **content}).encode()


def entry(name: str = "loss", **more: Any) -> dict[str, Any]:
    return {"tensorname": name, "start_idx": 0, "length": 9, "crc32c": 5, **more}


def test_a_step_like_one_before_is_read_without_being_parsed(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    # A step of 0 takes no byte.
    for step in range(1, 7):
        mode = ModeKeys.EVAL if step % 2 else ModeKeys.TRAIN
        run.write_step(step, {name: np.float32(step) for name in NAMES}, mode, step, shapes={"loss": ()})
    first, *others = (path.read_bytes() for path in sorted(tmp_path.glob("index/*/*.json")))
    forms, layouts = IndexTemplates(), Layouts()
    assert forms.read(first) is None
    forms.learn(first, parse(first, layouts))
    assert len(others) == 5
    for content in others:
        found = forms.read(content)
        assert found is not None
        assert describe(found) == describe(parse(content, layouts))


@pytest.mark.parametrize(
    ("learned", "asked"),
    [
        (write([entry()]), write([entry("other")])),
        (write([entry()]), write([entry(), entry("other")])),
        (write([entry()]), write([entry(length=10)])),
        (write([entry()]), write([entry(dtype="float16")])),
        (write([entry()]), write([entry()], shape_payload=[{"tensorname": "a", "originalname": "a", "shape": [1]}])),
        (write([entry()]), write([entry(crc32c=2**32)])),
        (write([entry()]), write([entry(crc32c=-1)])),
        (write([entry()]), write([entry()], {"mode": "NEVER"})),
        (write([entry()]), write([entry()], {"event_file_name": "a\0b"})),
        (write([entry()]), write([entry()])[:-3]),
        (write([entry()]), b""),
        # One without a checksum, as upstream writes it; and what stands in another order.
        (write([entry(), {"tensorname": "b", "start_idx": 9, "length": 9}]), None),
        (json.dumps({"tensor_payload": [], "meta": json.loads(write([]))["meta"]}).encode(), None),
        # What stands before the tensors would be left out of the template.
        (write_shape_first("a"), write_shape_first("b")),
        # A later key of the same name takes back what the head says.
        (write([entry()])[:-1] + b', "meta": {"mode": "EVAL", "mode_step": 1, "event_file_name": "b"}}', None),
    ],
)
def test_what_is_not_of_a_form_is_left_to_be_parsed(learned: bytes, asked: bytes | None) -> None:
    forms = IndexTemplates()
    forms.learn(learned, parse(learned, Layouts()))
    assert forms.read(learned if asked is None else asked) is None


def test_no_more_than_a_few_forms_are_kept() -> None:
    forms, layouts = IndexTemplates(), Layouts()
    contents = [write([entry(str(number))]) for number in range(_MOST_TEMPLATES + 1)]
    for content in contents:
        forms.learn(content, parse(content, layouts))
    assert [forms.read(content) is None for content in contents] == [True] + [False] * _MOST_TEMPLATES
