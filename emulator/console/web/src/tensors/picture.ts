// The interface of the pictures of tensors, each of which is one module of this folder.

import type { Run } from "../api";
import type { Child } from "../dom";
import type { Firing } from "./figures";

/** What several pictures are chosen by: it stays when another picture is chosen. */
export interface SharedChoices {
  reduction: string;
  mode: string;
  step: string;
  /** What lines are drawn over: "" for steps, "relative" or "time". */
  axis: string;
}

/** What is drawn. */
export interface Subject {
  /** The job's path in the API. */
  path: string;
  /** The tensors chosen in the tree, the newest choice last. */
  tensors: string[];
  firings: Firing[];
}

export interface Picture {
  /** The text of its button. */
  kind: string;
  /** It shows the run whichever tensors are chosen. */
  ofRun: boolean;
  /** Whether the run has what it shows. */
  isOffered: (run: Run) => boolean;
  /** Its selects and inputs, which call `changed` when it is to be drawn again. */
  showControls: (run: Run, changed: () => void) => Child[];
  /** Draw into an element, unless something newer is drawn there by the time the answer comes. */
  draw: (subject: Subject, into: Element, isCurrent: () => boolean) => Promise<void>;
  /** Release what it has drawn. */
  close?: () => void;
}
