import assert from "node:assert/strict";
import { test } from "node:test";

import { layOut, type Flame } from "../src/calls_layout.ts";

function call(name: string, seconds: number, ...children: Flame[]): Flame {
  return { name, file: "", line: 0, seconds, own: 0, children };
}

test("calls lie below the one that called them, as wide as they took", () => {
  const boxes = layOut(call("all", 10, call("a", 6, call("c", 3)), call("b", 2)), 1000);
  assert.deepEqual(
    boxes.map((box) => [box.flame.name, box.left, box.width, box.row]),
    [
      ["all", 0, 1000, 0],
      ["a", 0, 600, 1],
      ["c", 0, 300, 2],
      ["b", 600, 200, 1],
    ],
  );
});

test("what is too narrow, or took no time, is left out", () => {
  assert.deepEqual(
    layOut(call("all", 1, call("a", 0.0001), call("b", 0.5)), 100).map((box) => box.flame.name),
    ["all", "b"],
  );
  assert.equal(layOut(call("all", 0, call("a", 0)), 100).length, 1);
});
