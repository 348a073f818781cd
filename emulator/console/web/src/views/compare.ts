// Several jobs: tensors and metrics over each other or side by side, and what differs between the jobs.

import { readChoices, readParameters, writeParameters } from "../address";
import { ask, jobPath, type Job, type Metric, type Metrics, type Run, type Series } from "../api";
import { button, choice, choiceOf, debounce, fill, h, name } from "../dom";
import { labelLines } from "../lines";
import { quiet } from "../parts";
import type { PlottedLine } from "../plot_data";
import { LinePlot } from "../plots";
import { AXES, placeInTime } from "../tensors/figures";
import { showComparison, type Last } from "./comparison_table";
import { load, type View } from "./view";

// More lines than these in one picture are told apart by nobody.
const MOST_JOBS = 50;
const MOST_SHOWN = 8;
const AT_ONCE = 6;
const REDUCTIONS = ["mean", "abs_mean", "min", "max", "std", "l2"];

interface Compared {
  job: Job;
  run: Run | null;
  metrics: Metric[];
}

/** Do a task for each, few at once: a browser opens six connections. */
async function forEach<T, R>(items: T[], task: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array<R>(items.length);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const at = next++;
      results[at] = await task(items[at] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return results;
}

export function showCompare(root: Element, names: string[]): View {
  const kept = readParameters();
  let shown = kept.getAll("show");
  const choices = readChoices("reduction", "mode", "axis", "parameters");
  let together = kept.get("layout") !== "apart";
  let compared: Compared[] = [];
  let generation = 0;
  const plots: LinePlot[] = [];
  const controls = h("div", { class: "filters" });
  const chosen = h("div", { class: "filters" });
  const pictures = h("div", { class: "plots" });
  const table = h("div");
  const isPossible = names.length >= 2 && names.length <= MOST_JOBS;
  const split = (each: string): [string, string] => [
    each.slice(0, each.indexOf("/")),
    each.slice(each.indexOf("/") + 1),
  ];

  const refresh = (): Promise<void> =>
    load(table, async () => {
      compared = await forEach(names, async (each) => {
        const path = jobPath(...split(each));
        const [job, run, metrics] = await Promise.all([
          ask<Job>(path),
          ask<Run>(`${path}/tensors`).catch(() => null),
          ask<Metrics>(`${path}/metrics`),
        ]);
        return { job, run, metrics: metrics.series };
      });
      showControls();
      await draw();
    });

  /** What can be shown: "tensor NAME" and "metric NAME", losses first. */
  function listOffered(): string[] {
    const losses = new Set(
      compared.flatMap((each) => each.run?.collections.find((one) => one.name === "losses")?.tensors ?? []),
    );
    const tensors = [...new Set(compared.flatMap((each) => each.run?.tensors.map((one) => one.name) ?? []))].sort(
      (a, b) => Number(losses.has(b)) - Number(losses.has(a)),
    );
    const metrics = [...new Set(compared.flatMap((each) => each.metrics.map((one) => one.name)))].sort();
    return [...tensors.map((each) => `tensor ${each}`), ...metrics.map((each) => `metric ${each}`)];
  }

  function changed(): void {
    writeParameters({ jobs: names.join(","), show: shown, ...choices, layout: together ? "" : "apart" });
    showControls();
    void draw();
  }

  function showControls(): void {
    const offered = listOffered();
    shown = shown.filter((each) => offered.includes(each));
    if (!shown.length) shown = offered.slice(0, 1);
    const describe = (each: string): string => each.slice(7) + (each.startsWith("metric") ? " (metric)" : "");
    const left = offered.filter((each) => !shown.includes(each));
    const modes = [...new Set(compared.flatMap((each) => each.run?.modes ?? []))];
    if (!modes.includes(choices.mode)) choices.mode = "";
    const had = document.activeElement?.closest("label")?.textContent;
    fill(
      controls,
      choice("Show", [["", "add …"], ...left.map((each): [string, string] => [each, describe(each)])], "", (value) => {
        if (value) shown = [...shown, value].slice(-MOST_SHOWN);
        changed();
        controls.querySelector("select")?.focus();
      }),
      choiceOf("Reduction", [["", "value (mean)"], ...REDUCTIONS], choices, "reduction", changed),
      modes.length > 1 && shown.some((each) => each.startsWith("tensor"))
        ? choiceOf("Mode", [["", "all"], ...modes], choices, "mode", changed)
        : null,
      choiceOf("Over", AXES, choices, "axis", changed),
      choice(
        "Layout",
        [
          ["1", "one picture each"],
          ["", "side by side"],
        ],
        together ? "1" : "",
        (value) => {
          together = value === "1";
          changed();
        },
      ),
      choiceOf("Hyperparameters", [["", "that differ"], "all"], choices, "parameters", changed),
    );
    for (const label of controls.querySelectorAll("label"))
      if (had !== undefined && label.textContent === had) label.querySelector("select")?.focus();
    fill(
      chosen,
      // The last one stays, and its picture names it.
      (shown.length > 1 ? shown : []).map((each) =>
        button(
          [name(describe(each)), " ×"],
          () => {
            shown = shown.filter((other) => other !== each);
            changed();
          },
          { "aria-label": `Remove ${describe(each)}` },
        ),
      ),
    );
  }

  async function read(each: Compared, what: string): Promise<PlottedLine[]> {
    const [kind, title] = [what.slice(0, 6), what.slice(7)];
    const { reduction, mode, axis } = choices;
    if (kind === "metric") {
      // A metric of the system has a line for each host.
      return each.metrics
        .filter((one) => one.name === title)
        .map((metric) => {
          const label = metric.host ? `${each.job.name}, ${metric.host}` : each.job.name;
          return {
            label,
            subject: label,
            at: metric.timesMs.map((time) => (time - (axis === "time" ? 0 : each.job.creationMs)) / 1000),
            values: metric.values,
          };
        });
    }
    if (!each.run?.tensors.some((one) => one.name === title)) return [];
    const found = await ask<Series>(`${jobPath(each.job.region, each.job.name)}/tensors/series`, {
      tensor: title,
      reduction,
      mode,
      points: 800,
      most: 1000,
      times: axis ? 1 : "",
    });
    const labels = labelLines(found.series, () => each.job.name);
    const lines = found.series.map((line, index) => ({
      label: labels[index] ?? "",
      subject: line.worker === found.series[0]?.worker ? each.job.name : `${each.job.name}, ${line.worker}`,
      mode: line.mode,
      at: line.steps,
      values: line.mean,
    }));
    const times = found.series.map((line) => line.timesMs ?? []);
    return axis ? placeInTime(lines, times, axis) : lines;
  }

  async function draw(): Promise<void> {
    const mine = ++generation;
    const last: Last[] = [];
    await load(pictures, async () => {
      const found = await forEach(
        shown.flatMap((what) => compared.map((each) => ({ what, each }))),
        async ({ what, each }) => ({ what, job: each.job, lines: await read(each, what) }),
      );
      if (mine !== generation) return;
      for (const plot of plots.splice(0)) plot.close();
      const add = (what: string, of: string, lines: PlottedLine[]): HTMLElement => {
        const isMetric = what.startsWith("metric");
        const { axis } = choices;
        const x =
          isMetric && axis !== "time" ? "seconds since the job's start" : AXES.find(([each]) => each === axis)?.[1];
        const title = of ? `${of}: ${what.slice(7)}` : what.slice(7);
        const plot = new LinePlot({
          title,
          x: x ?? "global step",
          time: axis === "time",
          height: together ? 320 : 220,
        });
        plot.show(lines);
        plots.push(plot);
        return plot.element;
      };
      const elements = shown.flatMap((what) => {
        const known = found.filter((each) => each.what === what && each.lines.length);
        last.push({
          title: what.slice(7),
          values: compared.map(({ job }) => {
            const lines = known.find((each) => each.job === job)?.lines ?? [];
            return lines.map((line) => line.values.findLast((value) => value !== null) ?? null);
          }),
        });
        if (!known.length) return [quiet(`None of the jobs has ${what.slice(7)}.`)];
        return together
          ? [
              add(
                what,
                "",
                known.flatMap((each) => each.lines),
              ),
            ]
          : known.map((each) => add(what, each.job.name, each.lines));
      });
      fill(pictures, elements);
      pictures.classList.toggle("wide", together && shown.length === 1);
    });
    if (mine === generation)
      showComparison(
        table,
        compared.map((each) => each.job),
        last,
        choices.parameters === "all",
      );
  }

  fill(
    root,
    h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "Jobs"), " / compare"),
    h("h1", {}, `${names.length} jobs compared`),
    controls,
    chosen,
    pictures,
    table,
  );
  if (isPossible) void refresh();
  else fill(table, h("p", { class: "problem" }, `Choose two to ${MOST_JOBS} jobs in the list of jobs.`));
  const soon = debounce(() => {
    if (isPossible) void refresh();
  }, 300);
  return {
    title: "Compare",
    watches: "",
    change: (jobs) => {
      if (!jobs.length || names.some((each) => jobs.includes(split(each)[1]))) soon();
    },
    close: () => {
      generation++;
      plots.forEach((plot) => plot.close());
    },
  };
}
