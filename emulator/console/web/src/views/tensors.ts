// The tensors of a job: a tree to choose from, and a picture of what is chosen.

import { readChoices, readParameters, writeParameters } from "../address";
import { ask, reportedJob, type Job, type Run } from "../api";
import { button, fill, h } from "../dom";
import { quiet } from "../parts";
import { buildConfusion } from "../tensors/confusion";
import type { Firing } from "../tensors/figures";
import { buildHeatMap } from "../tensors/heat_map";
import { buildHistogram } from "../tensors/histogram";
import { buildImportance } from "../tensors/importance";
import { buildLines } from "../tensors/lines";
import type { Picture, SharedChoices } from "../tensors/picture";
import { chooseFirst, describeRun } from "../tensors/run_contents";
import { TensorTree } from "../tensors/tree";
import { buildValues } from "../tensors/values";
import { load, type Part } from "./view";

const REFRESH_MS = 800;

// An answer that was asked for ahead is good for so long.
const AHEAD_MS = 10_000;
let ahead: { path: string; at: number; run: Promise<Run> } | null = null;

/** Ask what a job's run holds, before its view is shown: to open a run takes longer than to draw it. */
export function askAhead(path: string): void {
  if (reportedJob || (ahead?.path === path && Date.now() - ahead.at < AHEAD_MS)) return;
  const run = ask<Run>(`${path}/tensors`);
  // Only the view that shows the run learns of an error.
  run.catch(() => undefined);
  ahead = { path, at: Date.now(), run };
}

/** The answer that was asked for ahead, once; else a new one. */
function askForRun(path: string): Promise<Run> {
  const found = ahead?.path === path && Date.now() - ahead.at < AHEAD_MS ? ahead.run : ask<Run>(`${path}/tensors`);
  ahead = null;
  return found;
}

export function showTensors(root: Element, path: string): Part {
  const kept = readParameters();
  const shared: SharedChoices = readChoices("reduction", "mode", "step", "axis");
  const lines = buildLines(shared);
  const pictures = [
    lines,
    buildHistogram(shared),
    buildHeatMap(shared),
    buildValues(shared),
    buildConfusion(shared),
    buildImportance(),
  ];
  const controls = h("div", { class: "filters" });
  const content = h("div", { "aria-live": "off" });
  const said = h("p", { class: "quiet", role: "status" }, "Loading …");
  const tree = new TensorTree(
    () => picture === lines,
    () => void draw(),
  );
  tree.chosen = kept.getAll("tensor");
  let picture: Picture = pictures.find((each) => each.kind === kept.get("picture")) ?? lines;
  let run: Run | null = null;
  let firings: Firing[] = [];
  let generation = 0;
  let timer = 0;

  async function refresh(): Promise<void> {
    const drawing: Promise<void>[] = [];
    await load(said, async () => {
      const before = run;
      run = await askForRun(path);
      fill(said, describeRun(run));
      if (run.damaged.length) said.append(h("span", { class: "problem" }, ` Damaged: ${run.damaged.join(" ")}`));
      if (JSON.stringify([before?.tensors, before?.modes]) === JSON.stringify([run.tensors, run.modes])) return;
      const known = new Set(run.tensors.map((each) => each.name));
      // An address may name what this run has not, or not yet.
      if (run.complete) tree.chosen = tree.chosen.filter((each) => known.has(each));
      if (!tree.chosen.length) tree.chosen = chooseFirst(run);
      if (!picture.isOffered(run)) picture = lines;
      // What is drawn is chosen with the controls; its numbers come while the tree is made.
      showControls(run);
      drawing.push(draw());
      tree.show(run);
    });
    await (drawing[0] ?? draw());
  }

  function showControls(run: Run): void {
    const buttons = pictures
      .filter((each) => each.isOffered(run))
      .map((each) =>
        button(each.kind, () => choose(each, run), {
          "aria-pressed": String(each === picture),
          "data-kind": each.kind,
        }),
      );
    const tabs = h("div", { class: "tabs small", role: "group", "aria-label": "Kind of picture" }, buttons);
    fill(
      controls,
      tabs,
      picture.showControls(run, () => void draw()),
    );
  }

  function choose(chosen: Picture, run: Run): void {
    picture.close?.();
    picture = chosen;
    showControls(run);
    fill(content, quiet("Loading …"));
    void draw();
    controls.querySelector<HTMLElement>(`[data-kind="${chosen.kind}"]`)?.focus();
  }

  async function draw(): Promise<void> {
    const mine = ++generation;
    keepChoices();
    if (run === null) return;
    const subject = { path, tensors: tree.chosen, firings };
    if (!tree.chosen.length && !picture.ofRun) {
      picture.close?.();
      fill(content, quiet("Choose a tensor."));
      return;
    }
    await load(content, () => picture.draw(subject, content, () => mine === generation));
  }

  /** What is chosen is in the address, which can be kept and sent; what is shown at first needs no parameters. */
  function keepChoices(): void {
    if (run === null || reportedJob) return;
    const first = chooseFirst(run).join();
    writeParameters({
      tensor: tree.chosen.join() === first ? [] : tree.chosen,
      picture: picture === lines ? "" : picture.kind,
      ...shared,
    });
  }

  const soon = (): void => {
    timer ||= window.setTimeout(
      () => {
        timer = 0;
        void refresh();
      },
      run === null ? 0 : REFRESH_MS,
    );
  };

  fill(root, said, h("div", { class: "split" }, tree.element, h("div", { class: "main" }, controls, content)));
  soon();
  return {
    update: (job: Job) => {
      firings = listFirings(job);
      // A plot keeps the firings that it was made with.
      picture.close?.();
      soon();
    },
    progress: soon,
    close: () => {
      clearTimeout(timer);
      generation++;
      picture.close?.();
    },
  };
}

function listFirings(job: Job): Firing[] {
  return job.rules.flatMap((rule) => {
    const step = rule.report?.Finding?.Step;
    return rule.status === "IssuesFound" && typeof step === "number" ? [{ step, rule: rule.name }] : [];
  });
}
