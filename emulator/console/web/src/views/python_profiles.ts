// Profiles of Python as flame graphs.

import { ask, type FlameGraph, type Profile, type PythonProfile } from "../api";
import { choice, fill, h, name } from "../dom";
import { drawFlames, locate } from "../flames";
import { formatDuration, formatNumber } from "../format";
import { folded, quiet, row, scrollable, table } from "../parts";
import { load } from "./view";

type Point = PythonProfile["begin"];

/** The profiles of Python, one of them or all of a process, as a flame graph. */
export function showPythonProfiles(path: string): {
  element: HTMLElement;
  update: (found: Profile) => void;
  close: () => void;
} {
  const controls = h("div", { class: "filters" });
  const content = h("div");
  const element = h("div", {}, controls, content);
  let [chosen, drawn, known] = ["", "", ""];
  let flames: { element: HTMLElement; close: () => void } | null = null;
  const draw = (): Promise<void> =>
    load(content, async () => {
      const [process = "", profiler = "", one = ""] = JSON.parse(chosen) as string[];
      const found = await ask<FlameGraph>(`${path}/profile/flame-graph`, { process, profiler, name: one });
      flames?.close();
      flames = drawFlames(`${one || "All profiles"} of ${process}, by ${profiler}`, found.tree);
      fill(
        content,
        flames.element,
        quiet(
          profiler === "cprofile"
            ? "cProfile counts for each pair of functions, and knows no stack above the two: what a function called is shared among its callers by the time that it took from each."
            : "pyinstrument looks a thousand times a second: what is shorter may be missed.",
          found.known > found.profiles + found.damaged
            ? ` The last ${found.profiles} of ${found.known} profiles are put together.`
            : "",
          found.damaged ? ` ${found.damaged} damaged left out.` : "",
        ),
        folded(
          "Functions by the time in themselves",
          scrollable(
            "Functions",
            table(
              ["Function", "Where", "Seconds in itself"],
              found.functions.map((each) => row(name(each.name), [name(locate(each)), formatNumber(each.own)])),
            ),
          ),
        ),
      );
    });
  return {
    element,
    update: (found) => {
      const list = found.pythonProfiles;
      const now = JSON.stringify(list.map((each) => [each.process, each.profiler, each.name]));
      if (now === known) return;
      known = now;
      if (!list.length)
        return fill(
          content,
          quiet("There are none: PythonProfilingConfig in ProfilingParameters names the steps of which there are."),
        );
      const whole = new Map(
        list.map((each) => [
          JSON.stringify([each.process, each.profiler, ""]),
          `all of ${each.process} by ${each.profiler}`,
        ]),
      );
      const single = list.map((each): [string, string] => [
        JSON.stringify([each.process, each.profiler, each.name]),
        `${each.process}: ${describePoint(each.begin)} to ${describePoint(each.end)}, ${formatDuration(1000 * (each.end_s - each.begin_s))}`,
      ]);
      if (!chosen) chosen = [...whole.keys()][0] ?? "";
      fill(
        controls,
        choice("Profile", [...whole, ...single], chosen, (value) => {
          chosen = value;
          void draw();
        }),
        found.pythonProfilesKnown > list.length
          ? h("span", { class: "quiet" }, `the last ${list.length} of ${found.pythonProfilesKnown}`)
          : null,
      );
      const wanted = JSON.stringify([chosen, now]);
      if (drawn !== wanted && !content.contains(document.activeElement)) {
        drawn = wanted;
        void draw();
      }
    },
    close: () => flames?.close(),
  };
}

function describePoint([mode, step, phase]: Point): string {
  return `${mode} step ${step}, ${phase}`;
}
