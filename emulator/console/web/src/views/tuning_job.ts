// A tuning job: its trials in parallel coordinates and as a table, and the best of them.

import type { Trial, TuningJob } from "../api";
import { fill, h, name, svg } from "../dom";
import { cutEnd, formatDuration, formatNumber, joinPath, linkToJob } from "../format";
import { mark } from "../marks";
import { folded, quiet, row, scrollable, table } from "../parts";
import { buildAxis, rankValues } from "../parallel_axes";
import { showJobPage } from "./job_page";
import { showExecution, showStatus } from "./status";
import type { View } from "./view";

const [WIDTH, HEIGHT, TOP, BOTTOM, SIDE] = [1000, 320, 44, 16, 90];
// Beyond that names of axes would run into each other.
const MOST_AXES = 10;

export function showTuningJob(root: Element, region: string, job: string): View {
  const path = `tuning-jobs/${joinPath(region, job)}`;
  return showJobPage<TuningJob>(root, {
    path,
    list: ["#/tuning", "Tuning jobs"],
    region,
    title: job,
    update: (found, head, content) => {
      const best = found.trialJobs.find((each) => each.name === found.bestTrial);
      const compared = found.trialJobs.map((each) => encodeURIComponent(`${each.region}/${each.name}`));
      fill(
        head,
        showStatus(found, path),
        h(
          "p",
          {},
          `${found.direction} ${found.objective}, ${found.strategy} strategy, ${found.trials}` +
            `${found.mostTrials === null ? "" : ` of ${found.mostTrials}`} trials.`,
        ),
        best
          ? h(
              "p",
              { "data-best": best.name },
              "Best trial: ",
              h("a", { href: linkToJob(best.region, best.name) }, name(best.name)),
              ` with ${found.objective} = ${formatNumber(best.value)}`,
            )
          : null,
        showExecution(found.execution),
      );
      const parameters = [...new Set(found.trialJobs.flatMap((each) => Object.keys(each.parameters)))];
      fill(
        content,
        h("h2", {}, "Trials"),
        compared.length > 1
          ? h("p", {}, h("a", { class: "button", href: `#/compare?jobs=${compared.join(",")}` }, "Compare all trials"))
          : null,
        found.trialJobs.length
          ? [drawTrials(found, parameters), listTrials(found, parameters)]
          : quiet("No trial has started yet."),
        folded(
          "DescribeHyperParameterTuningJob",
          h(
            "pre",
            { tabindex: "0", role: "region", "aria-label": "DescribeHyperParameterTuningJob" },
            JSON.stringify(found.description, null, 1),
          ),
        ),
      );
    },
  });
}

/** The trials as lines over an axis for each hyperparameter, and one for the objective. */
function drawTrials(job: TuningJob, parameters: string[]): HTMLElement {
  const trials = job.trialJobs;
  const axes = [
    ...parameters.slice(0, MOST_AXES - 1).map((each) =>
      buildAxis(
        each,
        trials.map((trial) => trial.parameters[each]),
        formatNumber,
      ),
    ),
    buildAxis(
      job.objective,
      trials.map((trial) => trial.value),
      formatNumber,
    ),
  ];
  const x = (axis: number): number =>
    axes.length < 2 ? WIDTH / 2 : SIDE + (axis * (WIDTH - 2 * SIDE)) / (axes.length - 1);
  const y = (position: number): number => HEIGHT - BOTTOM - position * (HEIGHT - TOP - BOTTOM);
  const ranks = rankValues(
    trials.map((trial) => trial.value),
    job.direction,
  );
  const lines = trials.map((trial, index) => {
    const points = axes.flatMap((axis, number) => {
      const position = axis.positions[index];
      return position === null || position === undefined ? [] : [`${x(number)},${y(position).toFixed(1)}`];
    });
    const rank = ranks[index] ?? null;
    const isBest = trial.name === job.bestTrial;
    return svg(
      "polyline",
      {
        points: points.join(" "),
        class: `trial${isBest ? " best" : rank === null ? " unknown" : ""}`,
        "data-trial": trial.name,
        "stroke-opacity": isBest ? 1 : 0.45 + 0.4 * (rank ?? 0),
      },
      svg("title", {}, `${trial.name}: ${job.objective} ${formatNumber(trial.value)}`),
    );
  });
  const best = lines.findIndex((_, index) => trials[index]?.name === job.bestTrial);
  const said = `${trials.length} trials over ${axes.map((axis) => axis.name).join(", ")}; the table has all values.`;
  return h(
    "figure",
    { class: "plot parallel" },
    h(
      "figcaption",
      {},
      "Hyperparameters and objective of each trial; the best one stands out" +
        (parameters.length >= MOST_AXES ? `. The first ${MOST_AXES - 1} hyperparameters are shown.` : ""),
    ),
    scrollable(
      "Trials in parallel coordinates",
      svg(
        "svg",
        { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said },
        lines,
        // Drawn last, it is not covered by others.
        best < 0 ? null : lines[best],
        axes.map((axis, number) =>
          svg(
            "g",
            {},
            svg("line", { x1: x(number), x2: x(number), y1: y(0), y2: y(1), class: "axis" }),
            svg(
              "text",
              { x: x(number), y: 18, "text-anchor": "middle", class: "axis-name" },
              cutEnd(`${axis.name}${axis.logarithmic ? " (log)" : ""}`, Math.floor(150 / axes.length)),
              svg("title", {}, axis.name),
            ),
            axis.ticks.map((tick) =>
              svg(
                "text",
                {
                  x: x(number) + (number === axes.length - 1 ? 8 : -8),
                  y: y(tick.at) + 4,
                  "text-anchor": number === axes.length - 1 ? "start" : "end",
                },
                cutEnd(tick.text, 12),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

/** The trials, the best one first. */
function listTrials(job: TuningJob, parameters: string[]): HTMLElement {
  const sign = job.direction === "Minimize" ? 1 : -1;
  const worth = (trial: Trial): number => (trial.value === null ? Infinity : sign * trial.value);
  const trials = [...job.trialJobs].sort((a, b) => worth(a) - worth(b) || a.creationMs - b.creationMs);
  const rows = trials.map((trial) =>
    row(
      [
        h("a", { href: linkToJob(trial.region, trial.name), "data-key": trial.name }, name(trial.name)),
        trial.name === job.bestTrial ? h("strong", {}, " best") : null,
      ],
      [
        mark(trial.status),
        formatNumber(trial.value),
        ...parameters.map((each) => name(trial.parameters[each] ?? "–")),
        trial.endMs === null ? "–" : formatDuration(trial.endMs - trial.creationMs),
      ],
      { "data-trial": trial.name },
    ),
  );
  const headings = ["Trial", "Status", job.objective, ...parameters, "Duration"].map(name);
  return scrollable("Trials", table(headings, rows, { class: "trials" }));
}
