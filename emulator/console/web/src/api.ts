// The emulator's own JSON API, as /_emulator/docs describes it.

import { writeQuery, type Query } from "./address";
import type { Line, Logs, Series } from "./api_types";
import { joinPath } from "./format";

export type * from "./api_types";

/** An answer that says in one sentence why there is none. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export const PREFIX = "/_emulator/";
const AGAIN_MS = 300;

interface Recorded {
  job: string;
  answers: Record<string, unknown>;
}

/** What a report holds in place of the emulator: the job, and answers by what was asked. */
const embedded = readReport();
export const reportedJob = embedded?.job ?? "";

function readReport(): Recorded | null {
  const text = document.getElementById("report")?.textContent;
  if (!text) return null;
  const found = JSON.parse(text) as Recorded;
  return {
    job: found.job,
    answers: Object.fromEntries(Object.entries(found.answers).map(([key, answer]) => [sortQuery(key), answer])),
  };
}

function sortQuery(asked: string): string {
  const [path = "", query = ""] = asked.split("?");
  const parts = new URLSearchParams(query);
  parts.sort();
  return `${path}?${parts.toString()}`;
}

/** Answer from the report; how closely a line was read is the same in all of them. */
function recall(path: string, query: Query): unknown {
  const answers = embedded?.answers ?? {};
  const find = (asked: Query): unknown => answers[sortQuery(address(path, asked).slice(PREFIX.length))];
  if (path.endsWith("/series")) {
    const { tensor, reduction, mode, worker } = query;
    const found = (Array.isArray(tensor) ? tensor : [tensor]).map(
      (each) => find({ tensor: each, reduction }) as Series | undefined,
    );
    const isAsked = (line: Line): boolean => (!mode || line.mode === mode) && (!worker || line.worker === worker);
    const [first] = found;
    return first && found.every((each) => each !== undefined)
      ? { ...first, series: found.flatMap((each) => each.series.filter(isAsked)) }
      : undefined;
  }
  if (path.endsWith("/heat-map")) return find({ ...query, columns: undefined });
  if (path.endsWith("/logs") && query["words"]) {
    const found = find({ ...query, words: "" }) as Logs | undefined;
    const words = String(query["words"]).toLowerCase();
    return (
      found && {
        streams: found.streams.map((each) => ({
          ...each,
          lines: each.lines.filter((line) => line.message.toLowerCase().includes(words)),
        })),
      }
    );
  }
  return find(query);
}

export function address(path: string, query: Query = {}): string {
  return `${PREFIX}${path}${writeQuery(query)}`;
}

export async function ask<T>(path: string, query: Query = {}, body?: unknown): Promise<T> {
  if (embedded) {
    const found = body === undefined ? recall(path, query) : undefined;
    if (found === undefined) throw new ApiError("This is not in the report: ask the emulator that has the job.", 404);
    return found as T;
  }
  const posted = body !== undefined;
  let answer: Response;
  try {
    const send = (): Promise<Response> =>
      fetch(address(path, query), posted ? { method: "POST", body: JSON.stringify(body) } : {});
    // A network that changes breaks what is under way: a question is asked once more.
    answer = await (posted
      ? send()
      : send().catch(async () => {
          await new Promise((go) => setTimeout(go, AGAIN_MS));
          return send();
        }));
  } catch {
    throw new ApiError("The emulator does not answer.", 0);
  }
  const found: unknown = await answer.json().catch(() => ({ error: `The emulator answered ${answer.status}.` }));
  if (!answer.ok) {
    const said = found as { error?: string; message?: string };
    throw new ApiError(said.error ?? said.message ?? `The emulator answered ${answer.status}.`, answer.status);
  }
  return found as T;
}

export function jobPath(region: string, name: string): string {
  return `jobs/${joinPath(region, name)}`;
}
