// Two to six jobs: one tensor or metric over each other or side by side, and what differs in their hyperparameters.

import { ask, jobPath, type Job, type Metric, type Metrics, type Run, type Series } from "../api";
import { choice, debounce, fill, h, name } from "../dom";
import { findDifferences, linkToJob } from "../format";
import { labelLines } from "../lines";
import { mark } from "../marks";
import { LinePlot, type PlottedLine } from "../plots";
import { load, type View } from "./view";

interface Compared {
  job: Job;
  run: Run | null;
  metrics: Metric[];
}

export function showCompare(root: Element, names: string[]): View {
  let what = "";
  let [reduction, mode] = ["", ""];
  let together = true;
  let compared: Compared[] = [];
  const plots: LinePlot[] = [];
  const controls = h("div", { class: "filters" });
  const pictures = h("div", { class: "plots" });
  const table = h("div");
  const split = (each: string): [string, string] => [
    each.slice(0, each.indexOf("/")),
    each.slice(each.indexOf("/") + 1),
  ];

  const refresh = (): Promise<void> =>
    load(table, async () => {
      if (names.length < 2 || names.length > 6) throw new Error("two to six");
      compared = await Promise.all(
        names.map(async (each) => {
          const path = jobPath(...split(each));
          const [job, run, metrics] = await Promise.all([
            ask<Job>(path),
            ask<Run>(`${path}/tensors`).catch(() => null),
            ask<Metrics>(`${path}/metrics`),
          ]);
          return { job, run, metrics: metrics.series };
        }),
      );
      showTable();
      showControls();
      await draw();
    });
  function showTable(): void {
    const parameters = compared.map((each) => (each.job.request["HyperParameters"] ?? {}) as Record<string, string>);
    const differing = findDifferences(parameters);
    const row = (title: string, cells: (HTMLElement | string)[]): HTMLElement =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, name(title)),
        cells.map((cell) => h("td", {}, cell)),
      );
    fill(
      table,
      h("h2", {}, "What differs"),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "What differs" },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              h("td"),
              compared.map((each) =>
                h(
                  "th",
                  { scope: "col" },
                  h("a", { href: linkToJob(each.job.region, each.job.name) }, name(each.job.name)),
                ),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            row(
              "Status",
              compared.map((each) => mark(each.job.status)),
            ),
            row(
              "Rules",
              compared.map((each) =>
                h(
                  "ul",
                  { class: "marks" },
                  each.job.rules.map((rule) => h("li", {}, mark(rule.status, rule.name))),
                ),
              ),
            ),
            differing.map((key) =>
              row(
                key,
                parameters.map((each) => (key in each ? name(each[key] ?? "") : "–")),
              ),
            ),
          ),
        ),
      ),
      differing.length ? null : h("p", { class: "quiet" }, "The hyperparameters are the same."),
    );
  }
  function showControls(): void {
    const losses = new Set(
      compared.flatMap((each) => each.run?.collections.find((one) => one.name === "losses")?.tensors ?? []),
    );
    const tensors = [...new Set(compared.flatMap((each) => each.run?.tensors.map((one) => one.name) ?? []))].sort(
      (a, b) => Number(losses.has(b)) - Number(losses.has(a)),
    );
    const metrics = [...new Set(compared.flatMap((each) => each.metrics.map((one) => one.name)))].sort();
    const options: [string, string][] = [
      ...tensors.map((each): [string, string] => [`tensor ${each}`, each]),
      ...metrics.map((each): [string, string] => [`metric ${each}`, `${each} (metric)`]),
    ];
    if (!options.some(([value]) => value === what)) what = options[0]?.[0] ?? "";
    const modes = [...new Set(compared.flatMap((each) => each.run?.modes ?? []))];
    if (!modes.includes(mode)) mode = "";
    fill(
      controls,
      choice("Show", options, what, (value) => {
        what = value;
        showControls();
        controls.querySelector("select")?.focus();
        void draw();
      }),
      choice(
        "Reduction",
        ["", "mean", "abs_mean", "min", "max", "std", "l2"].map((each): [string, string] => [
          each,
          each || "value (mean)",
        ]),
        reduction,
        (value) => {
          reduction = value;
          void draw();
        },
      ),
      modes.length > 1 && what.startsWith("tensor")
        ? choice("Mode", [["", "all"], ...modes.map((each): [string, string] => [each, each])], mode, (value) => {
            mode = value;
            void draw();
          })
        : null,
      choice(
        "Layout",
        [
          ["1", "one picture"],
          ["", "side by side"],
        ],
        together ? "1" : "",
        (value) => {
          together = value === "1";
          void draw();
        },
      ),
    );
  }
  async function read(each: Compared): Promise<PlottedLine[]> {
    const [kind, title] = [what.slice(0, 6), what.slice(7)];
    if (kind === "metric") {
      const metric = each.metrics.find((one) => one.name === title);
      return metric
        ? [
            {
              label: each.job.name,
              subject: each.job.name,
              at: metric.timesMs.map((time) => (time - each.job.creationMs) / 1000),
              values: metric.values,
            },
          ]
        : [];
    }
    if (!each.run?.tensors.some((one) => one.name === title)) return [];
    const found = await ask<Series>(`${jobPath(each.job.region, each.job.name)}/tensors/series`, {
      tensor: title,
      reduction,
      mode,
      points: 800,
      most: 1000,
    });
    const labels = labelLines(found.series, () => each.job.name);
    return found.series.map((line, index) => ({
      label: labels[index] ?? "",
      subject: line.worker === found.series[0]?.worker ? each.job.name : `${each.job.name}, ${line.worker}`,
      mode: line.mode,
      at: line.steps,
      values: line.mean,
    }));
  }
  async function draw(): Promise<void> {
    await load(pictures, async () => {
      const lines = await Promise.all(compared.map(read));
      for (const plot of plots.splice(0)) plot.close();
      const x = what.startsWith("metric") ? "seconds since the job's start" : "global step";
      const known = lines.filter((each) => each.length);
      const add = (title: string, shown: PlottedLine[]): HTMLElement => {
        const plot = new LinePlot({ title, x, height: together ? 320 : 220 });
        plot.show(shown);
        plots.push(plot);
        return plot.element;
      };
      fill(
        pictures,
        !known.length
          ? h("p", { class: "quiet" }, "None of the jobs has it.")
          : together
            ? add(what.slice(7), known.flat())
            : known.map((each) => add(`${each[0]?.subject ?? ""}: ${what.slice(7)}`, each)),
      );
      pictures.classList.toggle("wide", together);
    });
  }
  fill(
    root,
    h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "Jobs"), " / compare"),
    h("h1", {}, `${names.length} jobs compared`),
    controls,
    pictures,
    table,
  );
  if (names.length < 2 || names.length > 6)
    fill(table, h("p", { class: "problem" }, "Choose two to six jobs in the list of jobs."));
  else void refresh();
  const soon = debounce(() => {
    if (names.length >= 2 && names.length <= 6) void refresh();
  }, 300);
  return {
    title: "Compare",
    watches: "",
    change: (jobs) => {
      if (!jobs.length || names.some((each) => jobs.includes(split(each)[1]))) soon();
    },
    close: () => plots.forEach((plot) => plot.close()),
  };
}
