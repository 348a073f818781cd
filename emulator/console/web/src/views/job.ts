// A job: its timeline and rules, and by tabs its metrics, logs, tensors and configuration.

import {
  ask,
  jobPath,
  reportedJob,
  type Job,
  type Quantity,
  type Report,
  type Retry,
  type Rule,
  type TensorBoardAddress,
  type Warning,
} from "../api";
import { button, debounce, fill, h, keepingFocus, name } from "../dom";
import { formatNumber, linkTo, linkToJob, linkToS3, parseS3 } from "../format";
import { labelLines } from "../lines";
import { mark } from "../marks";
import { folded, quiet, row, table } from "../parts";
import type { PlottedLine } from "../plot_data";
import { LinePlot } from "../plots";
import { showConfiguration } from "./configuration";
import { showLastLines, showLogs } from "./logs";
import { showMetrics } from "./metrics";
import { showProfiler } from "./profiler";
import { hasEnded, showCrumbs, showExecution, showLinks, showStatus } from "./status";
import { showTags } from "./tags";
import { askAhead, showTensors } from "./tensors";
import { showTimeline } from "./timeline";
import { load, type Part, type View } from "./view";

const TABS: [part: string, text: string, show: (root: Element, path: string) => Part][] = [
  ["", "Overview", showOverview],
  ["metrics", "Metrics", showMetrics],
  ["logs", "Logs", showLogs],
  ["tensors", "Tensors", showTensors],
  ["profiler", "Profiler", showProfiler],
  ["configuration", "Configuration", showConfiguration],
];
const MOST_LOOKS = 30;

export function showJob(root: Element, region: string, jobName: string, part: string): View {
  const path = jobPath(region, jobName);
  const head = h("div", { class: "head" });
  const content = h("div");
  let shown: Part | null = null;
  let before = "";
  let [looks, timer] = [0, 0];
  if (part === "tensors") askAhead(path);
  const refresh = (): Promise<void> =>
    load(content, async () => {
      const job = await ask<Job>(path);
      if (content.hasAttribute("data-failed")) {
        shown?.close?.();
        shown = null;
      }
      keepingFocus(() => showHead(head, job));
      if (shown === null) {
        fill(content);
        const [, , show] = TABS.find(([each]) => each === part) ?? ["", "", showOverview];
        shown = show(content, path);
      }
      const now = JSON.stringify(job);
      if (now !== before) shown.update(job);
      before = now;
      // A rule leaves its report a moment after its verdict, and nothing is sent of that.
      const awaited = job.rules.some(
        (rule) => ["IssuesFound", "NoIssuesFound"].includes(rule.status) && rule.report === null,
      );
      if (awaited && looks++ < MOST_LOOKS) timer = window.setTimeout(() => void refresh(), 700);
    });
  const tabs = h(
    "nav",
    { class: "tabs", "aria-label": "Parts of the job" },
    TABS.map(([each, text]) =>
      h(
        "a",
        {
          href: linkToJob(region, jobName, each),
          "aria-current": each === part ? "page" : null,
          // Who points at the tab will most likely open it.
          ...(each === "tensors" && part !== each
            ? { pointerenter: () => askAhead(path), focus: () => askAhead(path) }
            : {}),
        },
        text,
      ),
    ),
  );
  fill(root, showCrumbs("#/jobs", "Jobs", region), h("h1", {}, name(jobName)), head, tabs, content);
  void refresh();
  const soon = debounce(() => void refresh(), 60);
  const mine = (jobs: string[]): boolean =>
    !jobs.length || jobs.includes(jobName) || jobs.some((each) => each.startsWith(jobName.slice(0, 26)));
  return {
    title: jobName,
    watches: `${region}/${jobName}`,
    change: (jobs) => {
      if (mine(jobs)) soon();
    },
    progress: () => shown?.progress?.(),
    close: () => {
      clearTimeout(timer);
      looks = MOST_LOOKS;
      shown?.close?.();
    },
  };
}

function showHead(head: Element, job: Job): void {
  const { region, tuningJob } = job;
  fill(
    head,
    showStatus(job, jobPath(region, job.name), job.secondaryStatus),
    tuningJob
      ? h("p", {}, "Trial of the tuning job ", h("a", { href: linkTo("tuning", region, tuningJob) }, name(tuningJob)))
      : null,
    showExecution(job.execution),
    showWarnings(job.warnings),
  );
}

function showWarnings(warnings: Warning[]): HTMLElement | null {
  if (!warnings.length) return null;
  const items = warnings.map((each) =>
    h(
      "li",
      { "data-warning": each.code },
      h("strong", {}, each.code),
      " ",
      h("span", {}, each.text),
      " ",
      h("span", { class: "quiet" }, each.remedy),
    ),
  );
  return h(
    "section",
    { class: "card warnings", "aria-label": "Warnings" },
    h("h2", {}, "Warnings"),
    h("ul", { class: "plain" }, items),
  );
}

function showOverview(root: Element, path: string): Part {
  const plots: LinePlot[] = [];
  const rules = h("div", { class: "cards" });
  const timeline = h("div");
  const links = h("div");
  const tries = new Map<string, HTMLElement>();
  const board = showTensorBoard(path);
  const lastLines = h("div");
  const tags = showTags(path);
  fill(
    root,
    lastLines,
    h("h2", {}, "Rules"),
    rules,
    h("h2", {}, "Timeline"),
    timeline,
    h("h2", {}, "Inputs and outputs"),
    links,
    tags.element,
  );
  let shownRules = "";
  return {
    update: (job) => {
      if (job.status === "Failed" && !lastLines.childElementCount)
        void showLastLines(lastLines, path, linkToJob(job.region, job.name, "logs"));
      if (shownRules !== JSON.stringify([job.rules, job.status])) {
        shownRules = JSON.stringify([job.rules, job.status]);
        keepingFocus(() => {
          for (const plot of plots.splice(0)) plot.close();
          fill(
            rules,
            job.rules.length
              ? job.rules.map((rule) => showRule(job, rule, path, plots, tries))
              : quiet("This job has no rules."),
          );
        });
      }
      tags.show(job);
      keepingFocus(() => fill(timeline, showTimeline(job, path)));
      fill(links, showLinks(job.links), "TensorBoardOutputConfig" in job.request ? board : null);
    },
    close: () => plots.forEach((plot) => plot.close()),
  };
}

/** TensorBoard on what the job writes for it, live: started from here, or by its command. */
function showTensorBoard(path: string): HTMLElement {
  const said = h("span", { role: "status" });
  const begin = (): void => {
    start.disabled = true;
    fill(said, "TensorBoard is starting …");
    void load(said, async () => {
      const { url } = await ask<TensorBoardAddress>(`${path}/tensorboard`, {}, {});
      fill(said, "It runs until the emulator ends: ", h("a", { href: url, rel: "noreferrer", target: "_blank" }, url));
    }).finally(() => {
      start.disabled = false;
    });
  };
  const start = button("Start TensorBoard", begin, { "data-key": "tensorboard" });
  return h(
    "p",
    { class: "facts" },
    reportedJob ? null : start,
    h("code", {}, `smdebug-emulator tensorboard ${decodeURIComponent(path.split("/").at(-1) ?? "")}`),
    said,
  );
}

function showRule(job: Job, rule: Rule, path: string, plots: LinePlot[], tries: Map<string, HTMLElement>): HTMLElement {
  const card = h(
    "section",
    { class: "card", "aria-label": `Rule ${rule.name}`, "data-rule": rule.name },
    h("h3", {}, mark(rule.status, rule.name)),
    rule.details
      ? h("p", { class: "said" }, rule.details)
      : quiet(rule.status === "InProgress" ? "It watches the tensors as they come." : "It has nothing to report."),
    rule.status === "Error" ? h("p", { class: "advice" }, "The rule itself failed: its log says where.") : null,
    rule.report ? showReport(rule.report, rule.name, plots) : null,
    h(
      "p",
      {},
      h(
        "a",
        { href: `${linkToS3(parseS3(rule.outputUri)?.bucket ?? "", parseS3(rule.outputUri)?.key ?? "")}/` },
        "Report and plot in S3",
      ),
      " · ",
      h(
        "a",
        { href: `${linkToJob(job.region, job.name, "logs")}?rule=${encodeURIComponent(rule.name)}` },
        "Log of the rule",
      ),
      reportedJob
        ? null
        : [" · ", h("a", { href: linkTo("processing", job.region, rule.processingJob) }, "Processing job")],
    ),
  );
  if (!reportedJob && hasEnded(job) && !("source_s3_uri" in rule.parameters)) {
    let again = tries.get(rule.name);
    if (!again) tries.set(rule.name, (again = showRetry(rule, path, plots)));
    card.append(again);
  }
  return card;
}

function showReport(report: Report, title: string, plots: LinePlot[]): HTMLElement {
  const steps = report.StepsEvaluated;
  const fired =
    report.RuleEvaluationStatus === "IssuesFound" && typeof report.Finding?.Step === "number"
      ? report.Finding.Step
      : null;
  const figures = report.Series.filter((each) => each.Steps.length).map((quantity) => {
    const values = quantity.Values.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null));
    const limit = quantity.Threshold === null ? null : Number(quantity.Threshold);
    const positive = values.filter((value): value is number => value !== null && value > 0);
    // The threshold is a part of the picture.
    const shown = limit !== null && limit > 0 ? [...positive, limit] : positive;
    const plot = new LinePlot({
      title: `${title}: ${quantity.Quantity}`,
      x: "global step",
      threshold: limit,
      height: 200,
      logarithmic: positive.length === values.length && Math.max(...shown) > 1000 * Math.min(...shown),
      firings: fired === null ? [] : [{ step: fired, rule: "fired" }],
    });
    plot.show(splitByMode(quantity, values));
    plots.push(plot);
    return plot.element;
  });
  return h(
    "div",
    {},
    quiet(
      `${steps["Evaluated"] ?? 0} ${steps["Evaluated"] === 1 ? "step" : "steps"} judged, ${steps["First"] ?? "–"} to ${steps["Last"] ?? "–"}; ${steps["WithValues"] ?? 0} had something to judge.`,
    ),
    report.Series.length ? table(["Judged", "First", "Last", "Fires when"], report.Series.map(showQuantity)) : null,
    figures,
  );
}

/** A line for each mode of the steps that were judged. */
function splitByMode(quantity: Quantity, values: (number | null)[]): PlottedLine[] {
  const modes = [...new Set(quantity.Steps.map((_, index) => quantity.Modes?.[index] ?? "GLOBAL"))];
  const labels = labelLines(
    modes.map((mode) => ({ mode, worker: "" })),
    () => quantity.Quantity,
  );
  return modes.map((mode, number) => {
    const chosen = quantity.Steps.flatMap((_, index) =>
      (quantity.Modes?.[index] ?? "GLOBAL") === mode ? [index] : [],
    );
    return {
      label: labels[number] ?? "",
      subject: quantity.Quantity,
      mode,
      at: chosen.map((index) => quantity.Steps[index] ?? 0),
      values: chosen.map((index) => values[index] ?? null),
    };
  });
}

function showQuantity(quantity: Quantity): HTMLElement {
  const at = (index: number): string =>
    quantity.Steps.length
      ? `${formatNumber(quantity.Values.at(index))} at step ${quantity.Steps.at(index) ?? ""}`
      : "–";
  const limit = quantity.Threshold === null ? "–" : `${quantity.FiresWhen} ${formatNumber(quantity.Threshold)}`;
  return row(quantity.Quantity, [at(0), at(-1), limit]);
}

function showRetry(rule: Rule, path: string, plots: LinePlot[]): HTMLElement {
  const known = rule.report?.RuleParameters ?? rule.parameters;
  const inputs = Object.entries({ ...known, ...rule.parameters })
    .filter(([key]) => !["rule_to_invoke", "action_json"].includes(key))
    .map(([key, value]) => ({
      key,
      before: format(value),
      input: h("input", { type: "text", value: format(value), name: key }),
    }));
  const result = h("div", { role: "status" });
  const run = h("button", { type: "submit" }, "Try");
  const form = h(
    "form",
    {
      class: "retry",
      submit: (event) => {
        event.preventDefault();
        run.disabled = true;
        fill(result, quiet("Judging …"));
        // What was left as it is stays the rule's own default.
        const changed = inputs.filter((each) => each.input.value !== each.before || each.key in rule.parameters);
        const parameters = Object.fromEntries(changed.map((each) => [each.key, each.input.value]));
        void load(result, async () => {
          const found = await ask<Retry>(`${path}/rules/${encodeURIComponent(rule.name)}/retry`, {}, { parameters });
          fill(
            result,
            h("h4", {}, mark(found.status, "With these")),
            h("p", { class: "said" }, found.details),
            found.report ? showReport(found.report, `${rule.name}, tried`, plots) : null,
          );
        }).finally(() => {
          run.disabled = false;
        });
      },
    },
    inputs.map((each) => h("label", {}, each.key, each.input)),
    run,
  );
  return folded("Try other parameters", form, result);
}

function format(value: unknown): string {
  return value === null || value === undefined ? "" : Array.isArray(value) ? value.join(",") : String(value);
}
