// Asking while somebody drags: one request at a time, the latest question next, bounds where it takes long.

import * as service from "./service.js";

/**
 * @typedef {import("./service.js").Asked} Asked
 * @typedef {import("./service.js").Explained} Explained
 * @typedef {import("./service.js").Several} Several
 * @typedef {import("./service.js").Predicted} Predicted
 * @typedef {{ ask: () => Asked | null, predicted: (told: Predicted) => void, answered: (told: Explained | Several, asked: Asked, since: number) => void,
 *   bounds: (bounds: import("./service.js").Bounds | null) => void, failed: (error: unknown) => void }} Listener
 */

/** Milliseconds that an answer may take before its bounds are shown, or a newer question takes its place. */
const PATIENCE = 300;

export class Asking {
  /** @param {Listener} listener */
  constructor(listener) {
    this.listener = listener;
    this.waiting = false;
    this.running = false;
    this.since = 0;
    this.begun = 0;
    /** The last question took long: the next begins with the stream. */
    this.slow = false;
    this.controller = new AbortController();
    /** @type {AbortController | null} whose decision was asked for last */
    this.told = null;
  }

  /** Something of the question or the person has changed. */
  changed() {
    if (!this.waiting) this.since = performance.now();
    this.waiting = true;
    if (!this.running) void this.run();
    else if (performance.now() - this.begun > PATIENCE) this.controller.abort();
  }

  async run() {
    this.running = true;
    while (this.waiting) {
      this.waiting = false;
      const since = this.since;
      const asked = this.listener.ask();
      if (!asked) continue;
      this.begun = performance.now();
      this.controller = new AbortController();
      try {
        const told = await this.answer(asked, this.controller);
        this.listener.bounds(null);
        this.listener.answered(told, asked, since);
      } catch (error) {
        if (!service.isAbort(error)) this.listener.failed(error);
      }
    }
    this.running = false;
  }

  /** @param {Asked} asked @param {AbortController} controller @returns {Promise<Explained | Several>} */
  async answer(asked, controller) {
    const { signal } = controller;
    const standing = setTimeout(() => void this.predict(asked, controller), PATIENCE / 4);
    try {
      return await this.found(asked, controller);
    } finally {
      clearTimeout(standing);
      if (!signal.aborted) void this.predict(asked, controller);
    }
  }

  /** @param {Asked} asked @param {AbortController} controller @returns {Promise<Explained | Several>} */
  async found(asked, controller) {
    const { signal } = controller;
    if (asked.diversity) return this.several(asked, controller);
    if (this.slow) return this.stream(asked, signal);
    const quick = new AbortController();
    const stop = () => quick.abort();
    signal.addEventListener("abort", stop);
    let late = false;
    try {
      return await this.timed(service.explain(asked, quick.signal), () => {
        late = true;
        quick.abort();
      });
    } catch (error) {
      if (!late || this.waiting || signal.aborted) throw error;
      return this.stream(asked, signal);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Several answers; where there is not even one, the one that says why. @param {Asked} asked @param {AbortController} controller */
  async several(asked, controller) {
    const late = () => (this.waiting ? controller.abort() : this.listener.bounds({ lower: 0, upper: null, nodes: 0, seconds: 0 }));
    const told = await this.timed(service.diverse(asked, controller.signal), late);
    if (told.answers.length > 0) return told;
    const { diversity: _, ...one } = asked;
    return service.explain(one, controller.signal);
  }

  /** @param {Asked} asked @param {AbortSignal} signal */
  async stream(asked, signal) {
    const begun = performance.now();
    const told = await service.explainStream(asked, signal, (bounds) => {
      if (performance.now() - begun > PATIENCE / 2) this.listener.bounds(bounds);
    });
    this.slow = performance.now() - begun > PATIENCE;
    return told;
  }

  /**
   * @template T
   * @param {Promise<T>} answer
   * @param {() => void} late
   */
  async timed(answer, late) {
    const timer = setTimeout(late, PATIENCE);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The decision as it is comes after the answer, or beside one that takes long; where it cannot be had, the answer says why. @param {Asked} asked @param {AbortController} controller */
  async predict(asked, controller) {
    if (this.told === controller) return;
    this.told = controller;
    try {
      const told = await service.predict({ model: asked.model, row: asked.row }, controller.signal);
      if (controller === this.controller) this.listener.predicted(told);
    } catch {
      // the same service answers the question itself
    }
  }
}
