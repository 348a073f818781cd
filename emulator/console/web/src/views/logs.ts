// What a job and its rules print, as it comes.

import { ask, reportedJob, type Job, type LogLine, type LogStream } from "../api";
import { choice, debounce, fill, h, name } from "../dom";
import { formatClock } from "../format";
import type { Part } from "./job";
import { load } from "./view";

const KEPT_LINES = 5000;

export function showLogs(root: Element, path: string): Part {
  let source = new URLSearchParams(location.hash.split("?")[1] ?? "").get("rule") ?? "";
  let host = "";
  let words = "";
  let next = new Map<string, number>();
  let first = new Map<string, number>();
  let busy = false;
  let again = false;
  const controls = h("div", { class: "filters" });
  const list = h("div", { class: "log", tabindex: "0", role: "log", "aria-label": "Log" });
  const earlier = h("button", { type: "button", hidden: true, click: () => void showEarlier() }, "Earlier lines");
  const said = h("p", { class: "quiet", role: "status" });
  const search = h("input", { type: "search", placeholder: "words in lines", "aria-label": "Search the log", "data-search": true, input: debounce(() => { words = search.value; restart(); }, 150) });

  const write = (stream: LogStream, line: LogLine, several: boolean): HTMLElement =>
    h("div", { class: "line" }, h("span", { class: "quiet time" }, `${formatClock(line.timeMs)} `), several ? h("span", { class: "host" }, `${stream.host} `) : null, name(line.message));
  const query = (): Record<string, string> => ({ rule: source, host, words });

  async function fetchNew(begin: boolean): Promise<void> {
    if (busy) { again = true; return; }
    busy = true;
    await load(said, async () => {
      const starts = [...next.values()];
      const found = await ask<{ streams: LogStream[] }>(`${path}/logs`, begin ? { ...query(), limit: 500 } : { ...query(), after: Math.min(...starts, 0x7fffffff) === 0x7fffffff ? 0 : Math.min(...starts), limit: 2000 });
      const several = found.streams.length > 1;
      const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 40;
      const fresh = found.streams.flatMap((stream) => {
        const from = begin ? 0 : (next.get(stream.stream) ?? 0);
        const lines = stream.lines.filter((line) => line.number >= from);
        if (begin) first.set(stream.stream, lines[0]?.number ?? 0);
        const full = !begin && stream.lines.length >= 2000;
        next.set(stream.stream, full ? (stream.lines.at(-1)?.number ?? 0) + 1 : stream.total);
        if (full) again = true;
        return lines.map((line) => ({ line, element: write(stream, line, several) }));
      }).sort((a, b) => a.line.timeMs - b.line.timeMs);
      if (begin) fill(list, fresh.map((each) => each.element));
      else list.append(...fresh.map((each) => each.element));
      while (list.childElementCount > KEPT_LINES) list.firstElementChild?.remove();
      earlier.hidden = words !== "" || reportedJob !== "" || ![...first.values()].some((number) => number > 0);
      const total = found.streams.reduce((sum, stream) => sum + stream.total, 0);
      said.textContent = list.childElementCount ? `${total} lines${words ? `, ${list.childElementCount} with these words` : ""}` : words ? "No line has these words." : "Nothing was printed yet.";
      if (begin || atEnd) list.scrollTop = list.scrollHeight;
    });
    busy = false;
    if (again) { again = false; void fetchNew(false); }
  }
  async function showEarlier(): Promise<void> {
    await load(said, async () => {
      const before = Math.max(...first.values());
      const found = await ask<{ streams: LogStream[] }>(`${path}/logs`, { ...query(), before, limit: 500 });
      const elements = found.streams.flatMap((stream) => {
        const lines = stream.lines.filter((line) => line.number < (first.get(stream.stream) ?? 0));
        first.set(stream.stream, lines[0]?.number ?? 0);
        return lines.map((line) => write(stream, line, found.streams.length > 1));
      });
      list.prepend(...elements);
      earlier.hidden = ![...first.values()].some((number) => number > 0);
    });
  }
  function restart(): void {
    [next, first] = [new Map(), new Map()];
    again = false;
    void fetchNew(true);
  }
  let known = "";
  fill(root, controls, said, earlier, list);
  return {
    update: (job: Job) => {
      const now = JSON.stringify([job.hosts, job.rules.map((rule) => rule.name)]);
      if (now !== known) {
        const begin = known === "";
        known = now;
        fill(controls,
          choice("Of", [["", "the training"], ...job.rules.map((rule): [string, string] => [rule.name, `rule ${rule.name}`])], source, (value) => { source = value; restart(); }),
          job.hosts.length > 1 ? choice("Host", [["", "all"], ...job.hosts.map((each): [string, string] => [each, each])], host, (value) => { host = value; restart(); }) : null, search);
        if (begin) return restart();
      }
      if (!reportedJob) void fetchNew(false);
    },
    progress: () => void fetchNew(false),
  };
}
