// The emulator's own JSON API, as /_emulator/docs describes it.

export interface RuleSummary { name: string; status: string }
/** What users of a job are warned of, and what they can do. */
export interface Warning { code: string; text: string; remedy: string }

export interface JobSummary {
  name: string; region: string; status: string; secondaryStatus: string; creationMs: number; endMs: number | null;
  failureReason: string | null; savesTensors: boolean; warnings: Warning[]; rules: RuleSummary[];
}
export interface Quantity {
  Quantity: string; Threshold: number | string | null; FiresWhen: string;
  Steps: number[]; Values: (number | string)[]; Tensors?: string[];
  /** Reports of earlier versions have none. */
  Modes?: (string | null)[];
}
export interface Report {
  Finding: { Step?: number; Value?: number | string } | null;
  RuleParameters: Record<string, unknown>;
  StepsEvaluated: Record<string, number | null>;
  Series: Quantity[];
  RuleEvaluationStatus: string;
}
export interface Rule extends RuleSummary {
  details: string | null; processingJob: string; parameters: Record<string, string>; outputUri: string;
  report: Report | null; startMs: number | null; endMs: number | null;
}
export interface Delivery {
  target_id: string; target_arn: string; succeeded: boolean; answer: string; request_id: string; function: string; timeMs: number;
}
export interface SentEvent {
  sequence: number; timeMs: number; service: string; region: string;
  content: Record<string, unknown> & { detail?: Record<string, unknown> }; deliveries: Delivery[];
}
export interface Transition { status: string; startMs: number; endMs: number | null; message: string }
export interface Job extends Omit<JobSummary, "rules"> {
  account: string; request: Record<string, unknown>; description: Record<string, unknown>; transitions: Transition[];
  rules: Rule[]; events: SentEvent[]; links: Record<string, string>; hosts: string[];
}
export interface LogLine { number: number; timeMs: number; message: string }
export interface LogStream { stream: string; host: string; total: number; lines: LogLine[] }
export interface Metric { name: string; host: string; unit: string; timesMs: number[]; values: number[] }
export interface Run {
  steps: { count: number; first: number | null; last: number | null }; modes: string[]; workers: string[]; ended: boolean;
  tensors: { name: string; saved: string[] }[];
  collections: { name: string; tensors: string[]; configuration: unknown }[]; damaged: string[]; complete: boolean;
}
export interface Line {
  tensor: string; mode: string; worker: string; known: number; read: number; unread: number; steps: number[];
  min: (number | null)[]; max: (number | null)[]; mean: (number | null)[];
  notFinite: { count: number; first: [number, string][] };
}
export interface Histogram {
  tensor: string; scale: string; edges: number[]; steps: number[]; modes: string[]; shares: number[][];
  counts: { size: number; zero: number; notFinite: number }[];
}
export interface HeatMap { tensors: string[]; known: number; steps: number[]; modes: string[]; values: (number | string | null)[][] }
export interface Values {
  tensor: string; step: number; shape?: number[]; dtype?: string; plane?: (number | string | boolean)[][]; index?: number[];
  texts?: string[]; tooLarge?: string; reductions: Record<string, number | string>;
  min?: number | null; max?: number | null; mean?: number | null; std?: number | null; notFinite?: number;
}
export interface Retry { status: string; details: string; report: Report | null; parameters: Record<string, string> }
export interface Level {
  bucket: string; prefix: string; folders: string[]; objects: { key: string; size: number; modifiedMs: number }[]; after: string;
}

export interface Swarm {
  nodes: { name: string; address: string; state: string; cpus: number; memoryBytes: number; containers: string[] }[];
  waiting: { container: string; why: string }[]; error?: string;
}

/** An answer that says in one sentence why there is none. */
export class ApiError extends Error {
  constructor(message: string, readonly status: number) {
    super(message);
  }
}

export const PREFIX = "/_emulator/";
const AGAIN_MS = 300;
type Query = Record<string, string | number | string[] | undefined>;

interface Recorded { job: string; answers: Record<string, unknown> }

/** What a report holds in place of the emulator: the job, and answers by what was asked. */
const embedded = readReport();
export const reportedJob = embedded?.job ?? "";

function readReport(): Recorded | null {
  const text = document.getElementById("report")?.textContent;
  if (!text) return null;
  const found = JSON.parse(text) as Recorded;
  return { job: found.job, answers: Object.fromEntries(Object.entries(found.answers).map(([key, answer]) => [sortQuery(key), answer])) };
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
    const found = (Array.isArray(tensor) ? tensor : [tensor]).map((each) => find({ tensor: each, reduction }) as { series: Line[] } | undefined);
    const isAsked = (line: Line): boolean => (!mode || line.mode === mode) && (!worker || line.worker === worker);
    return found.every((each) => each !== undefined) ? { series: found.flatMap((each) => each.series.filter(isAsked)) } : undefined;
  }
  if (path.endsWith("/heat-map")) return find({ ...query, columns: undefined });
  if (path.endsWith("/logs") && query["words"]) {
    const found = find({ ...query, words: "" }) as { streams: LogStream[] } | undefined;
    const words = String(query["words"]).toLowerCase();
    return found && { streams: found.streams.map((each) => ({ ...each, lines: each.lines.filter((line) => line.message.toLowerCase().includes(words)) })) };
  }
  return find(query);
}


export function address(path: string, query: Query = {}): string {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== "") found.append(key, String(each));
    }
  }
  const text = found.toString();
  return `${PREFIX}${path}${text ? `?${text}` : ""}`;
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
    const send = (): Promise<Response> => fetch(address(path, query), posted ? { method: "POST", body: JSON.stringify(body) } : {});
    // A network that changes breaks what is under way: a question is asked once more.
    answer = await (posted ? send() : send().catch(async () => { await new Promise((go) => setTimeout(go, AGAIN_MS)); return send(); }));
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
  return `jobs/${encodeURIComponent(region)}/${encodeURIComponent(name)}`;
}
