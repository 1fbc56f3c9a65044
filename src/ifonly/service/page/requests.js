// RequestLoop while somebody drags: one request at a time, the latest question next, bounds where it takes long.

import * as service from "./service.js";

/**
 * @typedef {import("./service.js").ExplainRequest} ExplainRequest
 * @typedef {import("./service.js").ExplainResponse} ExplainResponse
 * @typedef {import("./service.js").DiverseResponse} DiverseResponse
 * @typedef {import("./service.js").PredictResponse} PredictResponse
 * @typedef {{ ask: () => ExplainRequest | null, predicted: (response: PredictResponse) => void, answered: (response: ExplainResponse | DiverseResponse, request: ExplainRequest, since: number) => void,
 *   bounds: (bounds: import("./service.js").Bounds | null) => void, failed: (error: unknown) => void }} Listener
 */

/** Milliseconds that an answer may take before its bounds are shown, or a newer question takes its place. */
const SLOW_AFTER = 300;

export class RequestLoop {
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
    /** @type {AbortController | null} of the request whose decision was asked for last */
    this.predictedFor = null;
  }

  /** Something of the question or the person has changed. */
  changed() {
    if (!this.waiting) this.since = performance.now();
    this.waiting = true;
    if (!this.running) void this.run();
    else if (performance.now() - this.begun > SLOW_AFTER) this.controller.abort();
  }

  async run() {
    this.running = true;
    while (this.waiting) {
      this.waiting = false;
      const since = this.since;
      const request = this.listener.ask();
      if (!request) continue;
      this.begun = performance.now();
      this.controller = new AbortController();
      try {
        const response = await this.answer(request, this.controller);
        this.listener.bounds(null);
        this.listener.answered(response, request, since);
      } catch (error) {
        if (!service.isAbort(error)) this.listener.failed(error);
      }
    }
    this.running = false;
  }

  /** @param {ExplainRequest} request @param {AbortController} controller @returns {Promise<ExplainResponse | DiverseResponse>} */
  async answer(request, controller) {
    const { signal } = controller;
    const timer = setTimeout(() => void this.predict(request, controller), SLOW_AFTER / 4);
    try {
      return await this.found(request, controller);
    } finally {
      clearTimeout(timer);
      if (!signal.aborted) void this.predict(request, controller);
    }
  }

  /** @param {ExplainRequest} request @param {AbortController} controller @returns {Promise<ExplainResponse | DiverseResponse>} */
  async found(request, controller) {
    const { signal } = controller;
    if (request.diversity) return this.several(request, controller);
    if (this.slow) return this.stream(request, signal);
    const quick = new AbortController();
    const stop = () => quick.abort();
    signal.addEventListener("abort", stop);
    let late = false;
    try {
      return await this.timed(service.explain(request, quick.signal), () => {
        late = true;
        quick.abort();
      });
    } catch (error) {
      if (!late || this.waiting || signal.aborted) throw error;
      return this.stream(request, signal);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Several answers; where there is not even one, the one that says why. @param {ExplainRequest} request @param {AbortController} controller */
  async several(request, controller) {
    const late = () => (this.waiting ? controller.abort() : this.listener.bounds({ lower: 0, upper: null, nodes: 0, seconds: 0 }));
    const response = await this.timed(service.diverse(request, controller.signal), late);
    if (response.answers.length > 0) return response;
    const { diversity: _, ...one } = request;
    return service.explain(one, controller.signal);
  }

  /** @param {ExplainRequest} request @param {AbortSignal} signal */
  async stream(request, signal) {
    const begun = performance.now();
    const response = await service.explainStream(request, signal, (bounds) => {
      if (performance.now() - begun > SLOW_AFTER / 2) this.listener.bounds(bounds);
    });
    this.slow = performance.now() - begun > SLOW_AFTER;
    return response;
  }

  /**
   * @template T
   * @param {Promise<T>} answer
   * @param {() => void} late
   */
  async timed(answer, late) {
    const timer = setTimeout(late, SLOW_AFTER);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The decision as it is comes after the answer, or beside one that takes long; where it cannot be had, the answer says why. @param {ExplainRequest} request @param {AbortController} controller */
  async predict(request, controller) {
    if (this.predictedFor === controller) return;
    this.predictedFor = controller;
    try {
      const response = await service.predict({ model: request.model, row: request.row }, controller.signal);
      if (controller === this.controller) this.listener.predicted(response);
    } catch {
      // the same service answers the question itself
    }
  }
}
