// A pipeline execution: the graph of its steps, their jobs, and its parameters.

import type { PipelineExecution, PipelineStep } from "../api";
import { fill, h, name, svg } from "../dom";
import { cutEnd, formatDuration, joinPath, linkTo, linkToJob } from "../format";
import { mark, readMark } from "../marks";
import { pairs, quiet, row, scrollable, table } from "../parts";
import { placeSteps } from "../step_layout";
import { showJobPage } from "./job_page";
import { showStatus } from "./status";
import type { View } from "./view";

// In pixels.
const [BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN] = [190, 52, 56, 18, 6];
const MOST_LETTERS = 22;

export function showPipelineExecution(root: Element, region: string, id: string): View {
  const path = `pipeline-executions/${joinPath(region, id)}`;
  return showJobPage<PipelineExecution>(root, {
    path,
    list: ["#/pipelines", "Pipelines"],
    region,
    title: id,
    heading: (found) => `${found.pipeline}: ${found.title}`,
    update: (found, head, content) => {
      const parameters = Object.entries(found.parameters);
      fill(head, showStatus(found, path));
      fill(
        content,
        h("h2", {}, "Steps"),
        drawSteps(found),
        listSteps(found),
        h("h2", {}, "Parameters"),
        parameters.length
          ? pairs(
              parameters.map(([key, value]) => [
                name(key),
                name(typeof value === "string" ? value : JSON.stringify(value)),
              ]),
            )
          : quiet("This pipeline has no parameters."),
      );
    },
  });
}

/** The address of a step's job; none where a step of its type has no page here. */
function linkToStep(region: string, step: PipelineStep): string | null {
  if (!step.job) return null;
  const links: Record<string, (region: string, job: string) => string> = {
    Training: linkToJob,
    Processing: (region, job) => linkTo("processing", region, job),
    Tuning: (region, job) => linkTo("tuning", region, job),
  };
  return links[step.type]?.(region, step.job) ?? null;
}

function drawSteps(execution: PipelineExecution): HTMLElement {
  const steps = execution.stepList;
  const places = placeSteps(steps);
  const left = (index: number): number => MARGIN + (places[index]?.column ?? 0) * (BOX_WIDTH + GAP_X);
  const top = (index: number): number => MARGIN + (places[index]?.row ?? 0) * (BOX_HEIGHT + GAP_Y);
  const width = Math.max(...places.map((_, index) => left(index))) + BOX_WIDTH + MARGIN;
  const height = Math.max(...places.map((_, index) => top(index))) + BOX_HEIGHT + MARGIN;
  const arrows = steps.flatMap((step, index) =>
    step.needs.flatMap((need) => {
      const from = steps.findIndex((each) => each.name === need);
      if (from < 0) return [];
      const [x1, y1] = [left(from) + BOX_WIDTH, top(from) + BOX_HEIGHT / 2];
      const [x2, y2] = [left(index), top(index) + BOX_HEIGHT / 2];
      const middle = x2 - GAP_X / 2;
      return [
        svg("path", {
          class: "arrow",
          d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2 - 6},${y2} m-5,-4 l6,4 l-6,4`,
        }),
      ];
    }),
  );
  const boxes = steps.map((step, index) => {
    const status = step.outcome ?? step.status ?? "not started";
    const [shape, kind] = readMark(step.status ?? "");
    const box = svg(
      "g",
      { transform: `translate(${left(index)},${top(index)})`, class: `step ${kind}`, "data-step": step.name },
      svg("rect", { width: BOX_WIDTH, height: BOX_HEIGHT, rx: 8 }),
      svg("text", { x: 12, y: 21, class: "step-name" }, cutEnd(step.name, MOST_LETTERS)),
      svg("text", { x: 12, y: 40, class: "step-status" }, `${shape} ${step.type}, ${status}`),
      svg("title", {}, `${step.name}: ${step.type}, ${status}`),
    );
    const address = linkToStep(execution.region, step);
    return address ? svg("a", { href: address, "aria-label": `${step.name}: ${step.type}, ${status}` }, box) : box;
  });
  return h(
    "div",
    { class: "scroll graph", tabindex: "0", role: "region", "aria-label": "Graph of the steps" },
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, arrows, boxes),
  );
}

function listSteps(execution: PipelineExecution): HTMLElement {
  const rows = execution.stepList.map((step) => {
    const address = linkToStep(execution.region, step);
    const status = [
      step.status ? mark(step.status) : h("span", { class: "quiet" }, "not started"),
      step.outcome === null ? null : ` ${step.outcome}`,
      step.failureReason ? h("p", { class: "quiet reason" }, step.failureReason) : null,
    ];
    const job =
      step.job && address
        ? h("a", { href: address, "data-key": `job ${step.name}` }, name(step.job))
        : (step.job ?? "–");
    const duration = step.startMs === null || step.endMs === null ? "–" : formatDuration(step.endMs - step.startMs);
    const cells = [step.type, status, job, step.needs.join(", ") || "–", duration];
    return row(name(step.name), cells, { "data-step": step.name });
  });
  return scrollable("Steps", table(["Step", "Type", "Status", "Job", "After", "Duration"], rows));
}
