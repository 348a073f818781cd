// The profiler: what a job used of its machines with its steps beneath, where its time went, profiles of Python, the report.

import { ask, reportedJob, type LoopTime, type Phases, type Profile, type Usage, type UsageLine } from "../api";
import { fill, h, name } from "../dom";
import { formatClock, formatDuration, formatNumber } from "../format";
import { mark } from "../marks";
import { drawGrid } from "../heat_map";
import { folded, list, quiet, row, scrollable, table } from "../parts";
import type { PlottedLine } from "../plot_data";
import { LinePlot } from "../plots";
import { showProfilerReport } from "./profiler_report";
import { showPythonProfiles } from "./python_profiles";
import { load, type Part } from "./view";

type Bands = Pick<UsageLine, "times" | "low" | "mean" | "high">;

// Each picture, what its figures are called in it, and what they are divided by.
const PICTURES: [title: string, figures: Record<string, string>, divisor: number][] = [
  ["Processor (%)", { CPU: "busy", "I/O wait": "waiting for I/O" }, 1],
  ["GPU (%)", { GPU: "busy", "GPU memory": "memory" }, 1],
  ["Memory (%)", { Memory: "used" }, 1],
  ["I/O (MB/s)", { ReadThroughputInBytesPerSecond: "read", WriteThroughputInBytesPerSecond: "written" }, 1e6],
  ["I/O operations (1/s)", { IOPS: "operations" }, 1],
  [
    "Network (MB/s)",
    {
      ReceiveBytesPerSecond: "received",
      TransmitBytesPerSecond: "sent",
      "ReceiveBytesPerSecond (machine)": "received by the machine",
      "TransmitBytesPerSecond (machine)": "sent by the machine",
    },
    1e6,
  ],
];
const PARTS = [
  ["forward", "Forward"],
  ["backward", "Backward"],
  ["data_loading", "Data loading"],
  ["other", "Other"],
] as const;
const LOOK_MS = 2000;
const STILL_RUNNING = new Set(["InProgress", "Stopping"]);

export function showProfiler(root: Element, path: string): Part {
  const plots = new Map<string, LinePlot>();
  const said = h("p", { class: "quiet", role: "status" }, "Loading …");
  const time = scrollable("Where the time goes");
  const lines = h("div");
  const beneath = h("div", { class: "beneath" });
  const figures = scrollable("Figures");
  const [python, report] = [showPythonProfiles(path), showProfilerReport()];
  const rules = list([]);
  let [running, open, timer, before] = [true, true, 0, ""];

  async function refresh(): Promise<void> {
    const found = await ask<Profile>(`${path}/profile`);
    const now = JSON.stringify([found, running]);
    if (now === before || !open) return;
    before = now;
    fill(said, describe(found, running));
    fill(time, showTime(found));
    drawLines(found);
    // Who goes through it by keyboard is not disturbed.
    if (!beneath.contains(document.activeElement))
      fill(
        beneath,
        found.phases.map((each) => drawPhases(each, found.span ?? [0, 0])),
      );
    fill(figures, showFigures(found.usage));
    python.update(found);
  }
  function drawLines(found: Profile): void {
    const pictures = PICTURES.map(([title, known, divisor]): [string, PlottedLine[]] => [
      title,
      found.lines
        .filter((line) => line.figure in known)
        .map((line) =>
          plotBands(`${found.nodes.length > 1 ? `${line.node} ` : ""}${known[line.figure] ?? ""}`, line, divisor),
        ),
    ]);
    pictures.push([
      "Duration of steps (ms)",
      found.steps.map((each) => plotBands(`${each.process} ${each.mode}`, each, 1)),
    ]);
    for (const [title, drawn] of pictures) {
      let plot = plots.get(title);
      if (!plot && drawn.length) {
        plot = new LinePlot({ title, x: "time", time: true, height: 180, sync: path, absent: "nothing" });
        plots.set(title, plot);
        lines.append(plot.element);
      }
      plot?.show(drawn, found.span ?? undefined);
    }
  }
  const look = (): void => {
    clearTimeout(timer);
    void load(said, async () => {
      await refresh();
      await report.look();
    }).finally(() => {
      if (running && open && !reportedJob) timer = window.setTimeout(look, LOOK_MS);
    });
  };

  fill(
    root,
    said,
    h("h2", {}, "Where the time goes"),
    time,
    h("h2", {}, "What was used, with the steps beneath"),
    lines,
    beneath,
    folded("Figures", figures),
    h("h2", {}, "Profiles of Python"),
    python.element,
    h("h2", {}, "Rules of the profiler"),
    rules,
    h("h2", {}, "ProfilerReport"),
    report.element,
  );
  return {
    update: (job) => {
      if (!("ProfilerConfig" in job.request)) {
        fill(
          root,
          h(
            "p",
            { class: "quiet", role: "status" },
            "This job is not profiled: it was created without a ProfilerConfig. The SDK sends one unless disable_profiler is True.",
          ),
        );
        return;
      }
      running = STILL_RUNNING.has(job.status);
      const statuses = (job.description["ProfilerRuleEvaluationStatuses"] ?? []) as {
        RuleConfigurationName: string;
        RuleEvaluationStatus: string;
        StatusDetails?: string;
      }[];
      fill(
        rules,
        statuses.length
          ? statuses.map((each) =>
              h(
                "li",
                {},
                mark(each.RuleEvaluationStatus, each.RuleConfigurationName),
                each.StatusDetails ? h("p", { class: "said" }, each.StatusDetails) : null,
              ),
            )
          : h("li", { class: "quiet" }, "This job has none: ProfilerRuleConfigurations name them."),
      );
      report.update(job);
      look();
    },
    close: () => {
      open = false;
      clearTimeout(timer);
      python.close();
      for (const plot of plots.values()) plot.close();
    },
  };
}

function plotBands(label: string, bands: Bands, divisor: number): PlottedLine {
  const [values, low, high] = [bands.mean, bands.low, bands.high].map((line) =>
    line.map((value) => (value === null ? null : value / divisor)),
  );
  const line = { label, at: bands.times, values: values ?? [] };
  // Where each point is one number there is no band around it.
  return JSON.stringify(bands.low) === JSON.stringify(bands.high)
    ? line
    : { ...line, low: low ?? [], high: high ?? [] };
}

function describe(found: Profile, running: boolean): string {
  const more = running ? " The job is running: this goes on." : found.ended ? "" : " No more has come since.";
  if (!found.span)
    return running
      ? "Nothing has been measured yet."
      : "Nothing was measured: the profiler was off, or the job ended before.";
  const damaged = found.damaged ? ` ${countNoun(found.damaged, "damaged line")} skipped.` : "";
  return `${found.nodes.join(", ") || "No host"}: ${countNoun(found.samples, "sample")} and ${countNoun(found.events, "trace event")} in ${formatDuration(1000 * (found.span[1] - found.span[0]))}.${damaged}${more}`;
}

function countNoun(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function showTime(found: Profile): HTMLElement[] {
  if (!found.time.length)
    return [
      quiet(
        "No step was traced: it takes a hook, and ProfilingParameters in the job's ProfilerConfig (the SDK's FrameworkProfile). Traces come once a minute, and at the end.",
      ),
    ];
  const share = (seconds: number | null, whole: number): string =>
    seconds === null
      ? "–"
      : `${formatDuration(1000 * seconds)}${whole > 0 ? ` (${((100 * seconds) / whole).toFixed(0)} %)` : ""}`;
  const showLoop = (each: LoopTime): HTMLElement => {
    const bar = h(
      "div",
      { class: "shares", "aria-hidden": "true" },
      PARTS.map(([part]) => {
        const cut = h("span", { class: part });
        cut.style.flexGrow = String(each[part] ?? 0);
        return cut;
      }),
    );
    return h(
      "tr",
      { "data-process": each.process },
      h("th", { scope: "row" }, name(each.process), bar),
      h("td", { "data-label": "Steps" }, each.steps),
      h(
        "td",
        { "data-label": "Median step" },
        each.median_step === null ? "–" : `${formatNumber(Number((1000 * each.median_step).toPrecision(4)))} ms`,
      ),
      h("td", { "data-label": "Time" }, formatDuration(1000 * each.seconds)),
      PARTS.map(([part, text]) => h("td", { "data-part": part, "data-label": text }, share(each[part], each.seconds))),
    );
  };
  const parts = PARTS.map(([part, text]) => [h("span", { class: `swatch ${part}`, "aria-hidden": "true" }), text]);
  const headings = ["Process", "Steps", "Median step", "Time", ...parts];
  const untraced = found.time.some((each) => PARTS.some(([part]) => each[part] === null));
  return [
    table(headings, found.time.map(showLoop), { class: "where" }),
    ...(untraced
      ? [quiet("–: not traced; the loading of data is in the steps that DataloaderProfilingConfig names.")]
      : []),
  ];
}

/** What share of each part of the time a process was in a step, and in its phases; below the lines, on their axis. */
function drawPhases(phases: Phases, [first, last]: [number, number]): HTMLElement {
  const rows = [["step", "Step"], ...PARTS.slice(0, 3)].filter(([part = ""]) => part in phases.shares);
  const columns = Array.from({ length: phases.columns }, (_, at) =>
    formatClock(1000 * (first + ((at + 0.5) * (last - first)) / phases.columns)),
  );
  return drawGrid({
    title: `Steps of ${phases.process} (% of the time): ${rows.map(([, text]) => text?.toLowerCase() ?? "").join(", ")}`,
    rows: rows.map(([, text]) => text ?? ""),
    columns,
    columnLabel: "at",
    values: rows.map(([part = ""]) => (phases.shares[part] ?? []).map((share) => 100 * share)),
  });
}

function showFigures(usage: Usage[]): HTMLElement {
  return table(
    ["Host", "Figure", "Mean", "Median", "95th percentile", "Highest", "Unit"],
    usage.map((each) =>
      row(name(each.node), [each.metric, ...[each.mean, each.p50, each.p95, each.max].map(formatNumber), each.unit]),
    ),
  );
}
