// The service: requests, errors as sentences, the key (in memory only), and the stream of bounds.

import { t } from "./words.js";

/**
 * @typedef {string | number | boolean | null} Value
 * @typedef {Record<string, Value>} Row
 * @typedef {Record<string, { label?: string, unit?: string, options?: Record<string, string> }>} Translations
 * @typedef {{ kind: "real" | "integer", name: string, label?: string, unit?: string, translations?: Translations, lower: number, upper: number, step?: number | string, missing?: boolean }} NumberFeature
 * @typedef {{ kind: "binary" | "ordinal" | "categorical", name: string, label?: string, unit?: string, translations?: Translations, values?: Value[], levels?: Value[], categories?: Value[] }} ChoiceFeature
 * @typedef {NumberFeature | ChoiceFeature} Feature
 * @typedef {{ title: string, features: string[] }} Group
 * @typedef {{ title: string, row: Row }} Person
 * @typedef {{ model: string, title: string, subject: string, classes: Value[], kind: string, certificates: boolean,
 *   causes: Record<string, string[]>, schema: { features: Feature[] }, groups?: Group[], rules: string[], rules_in: Record<string, string[]>, people: Person[], translations: Record<string, Record<string, string>>,
 *   limits: { seconds: number, answers: number, constraints: number, text: number, body_bytes: number } }} ModelInfo
 * @typedef {{ models: { name: string, title: string }[], languages: string[], version: string }} Models
 * @typedef {string | Record<string, any>} Constraint
 * @typedef {{ target?: any, distance?: any, constraints?: Constraint[], fewest_first?: boolean }} Query
 * @typedef {{ feature: string, from: Value, to: Value, follows?: boolean }} Change
 * @typedef {{ status: "nearest" | "none exists" | "within" | "unknown" | "error", target: string, distance: number | null, distance_name: string,
 *   lower_bound: number | null, changes: Change[], factual: Row, counterfactual: Row | null, decision_before: Value, decision_after: Value,
 *   state: string, seconds: number, nodes: number, note: string, already: boolean, breaks: string[],
 *   reasons?: { blame: string[], minimal: boolean, note: string, relaxations: { words: string, changes: Change[] }[] } | null }} Answer
 * @typedef {{ score_margin: number[], changes: [number, string][], decision: Value }} Path
 * @typedef {{ answer: Answer, sentence: string, exact: string, guarantee: string, path: Path | null }} ExplainedAnswer
 * @typedef {{ words: string, said: string, sentence: string, query: Query | null }} Suggestion
 * @typedef {ExplainedAnswer & { blame: string[], help: Suggestion[], seconds: number }} ExplainResponse
 * @typedef {{ answers: ExplainedAnswer[], ending: string, proven: boolean, blame: string[], help: Suggestion[], seconds: number }} DiverseResponse
 * @typedef {{ recourse: { actions: (Change & { held: boolean })[], answer: Answer }, sentence: string, exact: string, seconds: number }} RecourseResponse
 * @typedef {{ decision: Value, score_margin: number | null, probabilities: Record<string, number> | null }} PredictResponse
 * @typedef {{ lower: number, upper: number | null, nodes: number, seconds: number }} Bounds
 * @typedef {{ blob: Blob, name: string }} File
 * @typedef {{ model: string, row: Row, query: Query, language: string, path?: boolean, diversity?: Record<string, any> }} ExplainRequest
 */

/** An error response of the service, with its message. */
export class ServiceError extends Error {
  /**
   * @param {number} status
   * @param {string} sentence
   * @param {string | null} where
   * @param {number} after seconds to wait before the next attempt
   */
  constructor(status, sentence, where = null, after = 0) {
    super(sentence);
    this.status = status;
    this.where = where;
    this.after = after;
  }
}

/** The service cannot be reached. */
export class Unreachable extends Error {}

let key = "";
/** @param {string} text */
export function useKey(text) {
  key = text;
}

/** Where the service is: a reverse proxy may serve it under a path of its own. */
const BASE = new URL("../", import.meta.url).href;

/** @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What went wrong, as a sentence. @param {unknown} error */
export function sentenceOf(error) {
  if (error instanceof ServiceError) return error.message;
  if (error instanceof Unreachable) return t("offline", { seconds: 1 });
  return String(error);
}

/**
 * @param {string} path
 * @param {{ body?: unknown, file?: Blob, signal?: AbortSignal }} [given]
 * @returns {Promise<Response>}
 */
async function send(path, { body, file, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (key) headers["Authorization"] = `Bearer ${key}`;
  const content = body === undefined ? file : JSON.stringify(body);
  if (content !== undefined) headers["Content-Type"] = file ? "application/octet-stream" : "application/json";
  let response;
  try {
    response = await fetch(BASE + path, { method: content === undefined ? "GET" : "POST", headers, body: content, signal, cache: "no-store" });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Unreachable(String(error));
  }
  if (!response.ok) throw await serviceError(response);
  return response;
}

/** @param {Response} response */
async function serviceError(response) {
  let sentence = `${response.status} ${response.statusText}`;
  let where = null;
  try {
    const data = await response.json();
    if (typeof data.error === "string") sentence = data.error;
    if (typeof data.where === "string") where = data.where;
  } catch {
    // no JSON: the status is all there is
  }
  return new ServiceError(response.status, sentence, where, Number(response.headers.get("Retry-After") ?? 0) || 0);
}

/**
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function data(path, body, signal) {
  const response = await send(path, { body, signal });
  try {
    return await response.json();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Unreachable(String(error));
  }
}

/** @returns {Promise<Models>} */
export const models = () => data("v1/models");
/** @param {string} model @returns {Promise<ModelInfo>} */
export const about = (model) => data(`v1/schema?model=${encodeURIComponent(model)}`);
/** @param {{ model: string, row: Row }} request @param {AbortSignal} signal @returns {Promise<PredictResponse>} */
export const predict = (request, signal) => data("v1/predict", request, signal);
/** @param {ExplainRequest} request @param {AbortSignal} signal @returns {Promise<ExplainResponse>} */
export const explain = (request, signal) => data("v1/explain", request, signal);
/** @param {ExplainRequest} request @param {AbortSignal} signal @returns {Promise<DiverseResponse>} */
export const diverse = (request, signal) => data("v1/diverse", request, signal);
/** @param {ExplainRequest} request @param {AbortSignal} signal @returns {Promise<RecourseResponse>} */
export const recourse = (request, signal) => data("v1/recourse", request, signal);
/** @param {{ model: string, text: string, language: string }} request @param {AbortSignal} signal @returns {Promise<{ words: string }>} */
export const rule = (request, signal) => data("v1/rule", request, signal);
/** @param {ExplainRequest} request @returns {Promise<File>} */
export const certify = async (request) => file(await send("v1/certify", { body: request }), "answer.cert");
/** @param {ExplainRequest} request @returns {Promise<File>} */
export const report = async (request) => file(await send("v1/report", { body: request }), "answer.html");
/** @param {ExplainRequest & { form: string }} request @returns {Promise<File>} */
export const notice = async (request) => file(await send("v1/notice", { body: request }), "notice.html");

/** @param {Response} response @param {string} otherwise @returns {Promise<File>} */
async function file(response, otherwise) {
  const named = /filename="([\w.-]+)"/.exec(response.headers.get("Content-Disposition") ?? "");
  return { blob: await response.blob(), name: named?.[1] ?? otherwise };
}

/**
 * The answer, and the bounds on the way to it.
 * @param {ExplainRequest} request
 * @param {AbortSignal} signal
 * @param {(bounds: Bounds) => void} onBounds
 * @returns {Promise<ExplainResponse>}
 */
export async function explainStream(request, signal, onBounds) {
  const response = await send("v1/explain/stream", { body: request, signal });
  for await (const { event, value } of events(response)) {
    if (event === "bounds") onBounds(value);
    else if (event === "answer") return value;
    else if (event === "error") throw new ServiceError(value.status, value.error, value.where ?? null, value.retry_after);
  }
  throw new Unreachable("the stream ended without an answer");
}

/**
 * The events of a text/event-stream.
 * @param {Response} response
 * @returns {AsyncGenerator<{ event: string, value: any }>}
 */
async function* events(response) {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let waiting = "";
  for (;;) {
    let done, value;
    try {
      ({ done, value } = await reader.read());
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new Unreachable(String(error));
    }
    waiting += decoder.decode(value, { stream: !done });
    const blocks = waiting.split(/\r?\n\r?\n/);
    waiting = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split(/\r?\n/);
      const event = lines.find((line) => line.startsWith("event:"))?.slice(6).trim();
      const text = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      if (event && text) yield { event, value: JSON.parse(text) };
    }
    if (done) return;
  }
}
