import assert from "node:assert/strict";
import { test } from "node:test";

import { buildAxis, rankValues } from "../src/parallel_axes.ts";
import { placeSteps } from "../src/step_layout.ts";

test("numbers are placed by size, on a logarithmic axis where they span more than two powers of ten", () => {
  const linear = buildAxis("epochs", ["1", "3", undefined, "5"], String);
  assert.deepEqual(linear.positions, [0, 0.5, null, 1]);
  assert.deepEqual(
    linear.ticks.map((tick) => tick.text),
    ["1", "3", "5"],
  );
  const wide = buildAxis("rate", ["0.0001", "0.01", "1"], String);
  assert.equal(wide.logarithmic, true);
  assert.ok(Math.abs((wide.positions[1] ?? 0) - 0.5) < 1e-9);
  assert.deepEqual(buildAxis("same", ["2", "2"], String).positions, [0.5, 0.5]);
});

test("what is not a number is placed by name", () => {
  const axis = buildAxis("optimizer", ["sgd", "adam", null, "sgd"], String);
  assert.deepEqual(axis.positions, [1, 0, null, 1]);
  assert.deepEqual(buildAxis("empty", [null], String).positions, [null]);
  assert.deepEqual(buildAxis("mixed", ["1", "auto"], String).positions, [0, 1]);
});

test("the best value has rank 1", () => {
  assert.deepEqual(rankValues([1, null, 3], "Minimize"), [1, null, 0]);
  assert.deepEqual(rankValues([1, 2, 3], "Maximize"), [0, 0.5, 1]);
  assert.deepEqual(rankValues([7], "Minimize"), [1]);
});

test("a step is behind all that it needs, also where a definition has a circle", () => {
  const steps = [
    { name: "report", needs: ["train", "split"] },
    { name: "split", needs: [] },
    { name: "train", needs: ["split"] },
    { name: "other", needs: [] },
  ];
  assert.deepEqual(
    placeSteps(steps).map(({ column, row }) => [column, row]),
    [
      [2, 0],
      [0, 0],
      [1, 0],
      [0, 1],
    ],
  );
  const circle = placeSteps([
    { name: "a", needs: ["b"] },
    { name: "b", needs: ["a"] },
  ]);
  assert.equal(circle.length, 2);
});
