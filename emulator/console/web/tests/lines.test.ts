import assert from "node:assert/strict";
import { test } from "node:test";

import { BACKGROUNDS, COLOURS, labelLines, styleLines } from "../src/lines.ts";

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test("lines stand out from the page in both themes", () => {
  for (const theme of ["light", "dark"] as const) {
    for (const colour of COLOURS[theme]) {
      const [low = 0, high = 0] = [luminance(colour), luminance(BACKGROUNDS[theme])].sort((a, b) => a - b);
      assert.ok((high + 0.05) / (low + 0.05) >= 3, `${colour} on ${theme}`);
    }
  }
});

test("a mode has the same dashes in every plot, and lines of one subject the colours of their modes", () => {
  const [train, evaluation] = styleLines(
    [
      { label: "a", subject: "loss", mode: "TRAIN" },
      { label: "b", subject: "loss", mode: "EVAL" },
    ],
    "light",
  );
  assert.notEqual(train?.colour, evaluation?.colour);
  assert.deepEqual(styleLines([{ label: "b", subject: "loss", mode: "EVAL" }], "light"), [evaluation]);
  const several = styleLines(
    ["x", "y"].flatMap((subject) => ["TRAIN", "EVAL"].map((mode) => ({ label: subject + mode, subject, mode }))),
    "light",
  );
  assert.deepEqual(
    several.map((style) => style.dash),
    [train?.dash, evaluation?.dash, train?.dash, evaluation?.dash],
  );
  assert.equal(new Set(several.map((style) => style.colour)).size, 2);
});

test("many lines have colours of their own", () => {
  const many = styleLines(
    Array.from({ length: 24 }, (_, index) => ({ label: String(index), mode: "TRAIN" })),
    "dark",
  );
  assert.equal(new Set(many.map((style) => style.colour)).size, 24);
});

test("modes and workers are named where there are several", () => {
  const name = (lines: { mode: string; worker: string }[]): string[] => labelLines(lines, () => "loss");
  assert.deepEqual(name([{ mode: "TRAIN", worker: "w0" }]), ["loss"]);
  assert.deepEqual(
    name([
      { mode: "TRAIN", worker: "w0" },
      { mode: "EVAL", worker: "w0" },
    ]),
    ["loss (TRAIN)", "loss (EVAL)"],
  );
  assert.deepEqual(
    name([
      { mode: "GLOBAL", worker: "w0" },
      { mode: "EVAL", worker: "w1" },
    ]),
    ["loss (no mode, w0)", "loss (EVAL, w1)"],
  );
});
