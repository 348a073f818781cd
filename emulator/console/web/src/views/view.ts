// What every view of the page has.

import { ApiError, type Job } from "../api";
import { fill, h } from "../dom";

export interface View {
  title: string;
  /** The job that the page's stream watches: "REGION/NAME", or none. */
  watches: string;
  /** Jobs changed; none are named where everything may have. */
  change: (jobs: string[]) => void;
  /** The watched job printed or saved something. */
  progress?: () => void;
  close?: () => void;
}

/** One tab of a job's page. */
export interface Part {
  /** The job as it is now. */
  update: (job: Job) => void;
  progress?: () => void;
  close?: () => void;
}

/** Show what is loaded, or in one sentence why it cannot be. */
export async function load(into: Element, task: () => Promise<void>): Promise<void> {
  try {
    await task();
    into.removeAttribute("data-failed");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // While the emulator is away, what is shown stays.
    if (error.status === 0 && into.childElementCount && !into.hasAttribute("data-failed")) return;
    into.setAttribute("data-failed", "");
    fill(into, h("p", { class: "problem", role: "status" }, error.message));
  }
}
