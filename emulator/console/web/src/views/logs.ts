// What a job and its rules print, as it comes.

import { readChoices } from "../address";
import { ask, reportedJob, type Job, type LogLine, type LogStream, type Logs } from "../api";
import { button, choiceOf, debounce, fill, h, name } from "../dom";
import { formatClock } from "../format";
import { load } from "./view";

const KEPT_LINES = 5000;
// Of each stream at once.
const MOST_LINES = 2000;
const LAST_LINES = 20;

type Logged = Pick<Job, "hosts"> & { rules: { name: string }[] };

/** The log's last lines, which usually say why a job failed. */
export async function showLastLines(into: Element, path: string, address: string): Promise<void> {
  await load(into, async () => {
    // Asked for as the Logs tab asks, since a report has the answer to that only.
    const found = await ask<Logs>(`${path}/logs`, { rule: "", host: "", words: "", limit: 500 });
    const several = found.streams.length > 1;
    const lines = found.streams
      .flatMap((stream) => stream.lines.map((line) => ({ ...line, host: stream.host })))
      .sort((a, b) => a.timeMs - b.timeMs)
      .slice(-LAST_LINES);
    if (!lines.length) return;
    fill(
      into,
      h("h2", {}, "Last lines of the log"),
      h(
        "pre",
        { tabindex: "0", role: "region", "aria-label": "Last lines of the log", "data-last-lines": true },
        lines.map((line) => `${several ? `${line.host} ` : ""}${line.message}`).join("\n"),
      ),
      h("p", {}, h("a", { href: address }, "The whole log")),
    );
  });
}

/** A log with its controls. */
export interface LogPanel {
  update: (job: Logged) => void;
  progress: () => void;
}

export function showLogs(root: Element, path: string): LogPanel {
  const chosen = { ...readChoices("rule"), host: "", words: "" };
  let next = new Map<string, number>();
  let first = new Map<string, number>();
  let busy = false;
  // What is asked for once the request under way is answered.
  let waiting: "" | "begin" | "more" = "";
  // Counts the choices: an answer to an earlier one is not shown.
  let choice = 0;
  const controls = h("div", { class: "filters" });
  const list = h("div", { class: "log", tabindex: "0", role: "log", "aria-label": "Log" });
  const earlier = button("Earlier lines", () => void showEarlier(), { hidden: true });
  const said = h("p", { class: "quiet", role: "status" });
  const search = h("input", {
    type: "search",
    placeholder: "words in lines",
    "aria-label": "Search the log",
    "data-search": true,
    input: debounce(() => {
      chosen.words = search.value;
      restart();
    }, 150),
  });

  const write = (stream: LogStream, line: LogLine, several: boolean): HTMLElement =>
    h(
      "div",
      { class: "line", "data-stream": stream.stream, "data-number": line.number },
      h("span", { class: "quiet time" }, `${formatClock(line.timeMs)} `),
      several ? h("span", { class: "host" }, `${stream.host} `) : null,
      name(line.message),
    );

  async function fetchNew(begin: boolean): Promise<void> {
    if (busy) {
      waiting = begin ? "begin" : waiting || "more";
      return;
    }
    busy = true;
    const asked = choice;
    await load(said, async () => {
      const positions = ["0", ...[...next].map(([stream, number]) => `${stream}:${number}`)];
      const found = await ask<Logs>(
        `${path}/logs`,
        begin ? { ...chosen, limit: 500 } : { ...chosen, after: positions, limit: MOST_LINES },
      );
      if (asked !== choice) return;
      const several = found.streams.length > 1;
      const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 40;
      const fresh = found.streams
        .flatMap((stream) => {
          const lines = stream.lines;
          if (!first.has(stream.stream)) first.set(stream.stream, lines[0]?.number ?? 0);
          const end = (lines.at(-1)?.number ?? -1) + 1;
          // An answer holds a limited number of lines or bytes: where it ends before the log does, the rest is asked for.
          const cut = !begin && lines.length > 0 && (chosen.words ? lines.length >= MOST_LINES : end < stream.total);
          next.set(stream.stream, cut ? end : Math.max(stream.total, end));
          if (cut) waiting ||= "more";
          return lines.map((line) => ({ line, element: write(stream, line, several) }));
        })
        .sort((a, b) => a.line.timeMs - b.line.timeMs);
      if (begin)
        fill(
          list,
          fresh.map((each) => each.element),
        );
      else list.append(...fresh.map((each) => each.element));
      while (list.childElementCount > KEPT_LINES) {
        const { stream = "", number = "0" } = (list.firstElementChild as HTMLElement).dataset;
        first.set(stream, Number(number) + 1);
        list.firstElementChild?.remove();
      }
      earlier.hidden = chosen.words !== "" || reportedJob !== "" || ![...first.values()].some((number) => number > 0);
      const total = found.streams.reduce((sum, stream) => sum + stream.total, 0);
      said.textContent = list.childElementCount
        ? `${total} lines${chosen.words ? `, ${list.childElementCount} with these words` : ""}`
        : chosen.words
          ? "No line has these words."
          : "Nothing was printed yet.";
      list.hidden = !list.childElementCount;
      if (begin || atEnd) list.scrollTop = list.scrollHeight;
    });
    busy = false;
    if (waiting) {
      const begins = waiting === "begin";
      waiting = "";
      void fetchNew(begins);
    }
  }
  async function showEarlier(): Promise<void> {
    const asked = choice;
    await load(said, async () => {
      const before = ["0", ...[...first].map(([stream, number]) => `${stream}:${number}`)];
      const found = await ask<Logs>(`${path}/logs`, { ...chosen, before, limit: 500 });
      if (asked !== choice) return;
      const several = found.streams.length > 1;
      const elements = found.streams
        .flatMap((stream) => {
          const lines = stream.lines.filter((line) => line.number < (first.get(stream.stream) ?? 0));
          first.set(stream.stream, lines[0]?.number ?? 0);
          return lines.map((line) => ({ line, element: write(stream, line, several) }));
        })
        .sort((a, b) => a.line.timeMs - b.line.timeMs);
      list.prepend(...elements.map((each) => each.element));
      earlier.hidden = ![...first.values()].some((number) => number > 0);
    });
  }
  function restart(): void {
    [next, first] = [new Map(), new Map()];
    waiting = "";
    choice += 1;
    void fetchNew(true);
  }
  let known = "";
  fill(root, controls, said, earlier, list);
  return {
    update: (job) => {
      const now = JSON.stringify([job.hosts, job.rules.map((rule) => rule.name)]);
      if (now !== known) {
        const begin = known === "";
        known = now;
        fill(
          controls,
          job.rules.length
            ? choiceOf(
                "Log of",
                [["", "the job"], ...job.rules.map((rule): [string, string] => [rule.name, `rule ${rule.name}`])],
                chosen,
                "rule",
                restart,
              )
            : null,
          job.hosts.length > 1 ? choiceOf("Host", [["", "all"], ...job.hosts], chosen, "host", restart) : null,
          search,
        );
        if (begin) return restart();
      }
      if (!reportedJob) void fetchNew(false);
    },
    progress: () => void fetchNew(false),
  };
}
