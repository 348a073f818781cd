// One stream a page that is seen: it announces changes, and after a break those that were missed.

import { address } from "./api";

export interface Watcher {
  /** Jobs changed; none are named where everything may have. */
  change: (jobs: string[]) => void;
  progress?: () => void;
}

export class ChangeStream {
  private source: EventSource | null = null;
  private watched = "";
  private last = "";
  private timer = 0;
  private broke = false;

  constructor(
    private readonly tell: Watcher,
    private readonly show: (connected: boolean) => void,
  ) {
    // A browser opens six connections to one address for all its tabs: those that nobody sees leave theirs to the others.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.open();
      else this.close();
    });
    window.addEventListener("online", () => this.open());
  }

  /** Watch a job beside all changes: "REGION/NAME", or none. */
  watch(job: string): void {
    if (this.source && job === this.watched) return;
    this.watched = job;
    this.open();
  }

  private close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private open(): void {
    this.close();
    if (document.visibilityState !== "visible") return;
    const source = new EventSource(address("stream", { job: this.watched, lastEventId: this.last }));
    this.source = source;
    const note = (event: MessageEvent<string>): void => {
      this.last = event.lastEventId || this.last;
      this.show(true);
    };
    source.addEventListener("hello", (event) => {
      note(event);
      this.tell.change([]);
    });
    source.addEventListener("change", (event) => {
      note(event);
      this.tell.change((JSON.parse(event.data as string) as { jobs: string[] }).jobs);
    });
    source.addEventListener("progress", (event) => {
      note(event);
      this.tell.progress?.();
    });
    source.addEventListener("open", () => {
      this.show(true);
      // What was told just before the break may have been asked for in vain.
      if (this.broke) this.tell.change([]);
      this.broke = false;
    });
    source.addEventListener("error", () => {
      this.show(false);
      this.broke = true;
      // A browser gives up where the answer is not a stream, as while the emulator starts or too many pages are open.
      if (source.readyState === EventSource.CLOSED) this.timer = window.setTimeout(() => this.open(), 1000);
    });
  }
}
