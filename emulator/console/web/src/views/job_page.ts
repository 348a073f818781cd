// The page of a processing job, a tuning job or a pipeline execution: it is asked for again as long as it runs.

import { ask } from "../api";
import { debounce, fill, h, keepingFocus, name } from "../dom";
import { hasEnded, showCrumbs } from "./status";
import { load, type View } from "./view";

const AGAIN_MS = 2000;

export interface JobPageOptions<T> {
  /** Where the API has the job. */
  path: string;
  /** The list that it belongs to. */
  list: [address: string, text: string];
  region: string;
  title: string;
  heading?: (job: T) => string;
  /** Show the job as it is now. */
  update: (job: T, head: Element, content: Element) => void;
}

export function showJobPage<T extends { status: string }>(root: Element, options: JobPageOptions<T>): View {
  const heading = h("h1", {}, name(options.title));
  const head = h("div", { class: "head" });
  const content = h("div");
  let before = "";
  let timer = 0;
  const refresh = (): Promise<void> =>
    load(content, async () => {
      const job = await ask<T>(options.path);
      clearTimeout(timer);
      if (!hasEnded(job)) timer = window.setTimeout(() => void refresh(), AGAIN_MS);
      const now = JSON.stringify(job);
      if (now === before) return;
      before = now;
      if (options.heading) fill(heading, name(options.heading(job)));
      if (content.hasAttribute("data-failed")) fill(content);
      keepingFocus(() => options.update(job, head, content));
    });
  fill(root, showCrumbs(options.list[0], options.list[1], options.region), heading, head, content);
  void refresh();
  return {
    title: options.title,
    watches: "",
    change: debounce(() => void refresh(), 200),
    close: () => clearTimeout(timer),
  };
}
