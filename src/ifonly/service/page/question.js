// The question: what may change of each feature, rules in words, how many answers. It knows nothing of the person, so it
// can be a link; it becomes the service's query, and any query becomes it again.

import { isNumber, same } from "./format.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").Query} Query
 * @typedef {import("./service.js").Constraint} Constraint
 * @typedef {import("./service.js").Value} Value
 * @typedef {"free" | "fixed" | "only_up" | "only_down"} Mode
 * @typedef {{ mode: Mode, lower: number | null, upper: number | null, limited: boolean, allowed: Value[] | null, weight: number, fill: boolean }} FeatureSettings
 * @typedef {{ kind: "feature", name: string } | { kind: "rule", at: number } | { kind: "other", at: number }} Origin
 * @typedef {{ settings: Map<string, FeatureSettings>, rules: string[], others: Constraint[], target: any, distance: any, fewest: boolean, ways: number, differ: string }} Question
 */

/** The costs of a change that one can choose, and their weights. */
export const COSTS = { easy: 0.25, normal: 1, hard: 4 };
export const DIFFER = ["features", "values", "distance"];
export const MAX_WAYS = 5;
const MAX_LINK = 20000;
/** Lists and objects inside one another in a link: the service takes no more. */
const MAX_DEPTH = 32;

/** @returns {FeatureSettings} */
export function free() {
  return { mode: "free", lower: null, upper: null, limited: false, allowed: null, weight: COSTS.normal, fill: false };
}

/** @param {ModelInfo} about @returns {Question} */
export function openQuestion(about) {
  const settings = new Map(about.schema.features.map((feature) => [feature.name, free()]));
  return { settings, rules: [], others: [], target: null, distance: "l1", fewest: false, ways: 1, differ: "features" };
}

/**
 * The query, and where each of its constraints came from.
 * @param {Question} question
 * @returns {{ query: Query, origins: Origin[] }}
 */
export function toQuery(question) {
  /** @type {Constraint[]} */
  const constraints = [];
  /** @type {Origin[]} */
  const origins = [];
  /** @type {Record<string, number>} */
  const weights = Object.create(null);
  for (const [name, settings] of question.settings) {
    for (const constraint of ofFeature(name, settings)) {
      constraints.push(constraint);
      origins.push({ kind: "feature", name });
    }
    if (settings.weight !== COSTS.normal) weights[name] = settings.weight;
  }
  question.rules.forEach((text, at) => {
    constraints.push(text);
    origins.push({ kind: "rule", at });
  });
  question.others.forEach((constraint, at) => {
    constraints.push(constraint);
    origins.push({ kind: "other", at });
  });
  const own = typeof question.distance === "string" ? { norm: question.distance } : question.distance;
  const distance = { ...own, weights, scales: own.scales ?? {} };
  /** @type {Query} */
  const query = { distance, constraints, fewest_first: question.fewest };
  if (question.target !== null) query.target = question.target;
  return { query, origins };
}

/** @param {string} feature @param {FeatureSettings} settings @returns {Constraint[]} */
function ofFeature(feature, settings) {
  /** @type {Constraint[]} */
  const found = [];
  if (settings.mode !== "free") found.push({ kind: settings.mode, feature });
  if (settings.lower !== null || settings.upper !== null) {
    const ends = { ...(settings.lower !== null ? { lower: settings.lower } : {}), ...(settings.upper !== null ? { upper: settings.upper } : {}) };
    found.push({ kind: "range", feature, ...ends });
  }
  if (settings.allowed !== null) found.push({ kind: "allowed", feature, values: settings.allowed });
  if (settings.fill) found.push({ kind: "imputable", feature });
  return found;
}

/**
 * The question that asks this query. What has no button of its own is kept as it is.
 * @param {Query} query
 * @param {ModelInfo} about
 * @param {Question} before for what a query does not say
 * @returns {Question}
 */
export function fromQuery(query, about, before) {
  const question = { ...openQuestion(about), ways: before.ways, differ: before.differ };
  for (const constraint of query.constraints ?? []) {
    if (typeof constraint === "string") question.rules.push(constraint);
    else if (constraint["kind"] === "rule" && typeof constraint["text"] === "string") question.rules.push(constraint["text"]);
    else if (!takeConstraint(constraint, question, about)) question.others.push(constraint);
  }
  takeDistance(query.distance ?? "l1", question);
  question.fewest = query.fewest_first === true;
  const target = query.target ?? null;
  question.target = target !== null && typeof target === "object" && target["other"] === true ? null : target;
  return question;
}

/** @param {Record<string, any>} constraint @param {Question} question @param {ModelInfo} about */
function takeConstraint(constraint, question, about) {
  const feature = about.schema.features.find((one) => one.name === constraint["feature"]);
  const settings = feature && question.settings.get(feature.name);
  if (!feature || !settings) return false;
  switch (constraint["kind"]) {
    case "fixed":
    case "only_up":
    case "only_down":
      if (settings.mode !== "free") return false;
      settings.mode = constraint["kind"];
      return true;
    case "range": {
      const ends = [constraint["lower"] ?? null, constraint["upper"] ?? null];
      if (settings.limited || !isNumber(feature) || !ends.every((end) => end === null || typeof end === "number")) return false;
      [settings.lower, settings.upper] = ends;
      settings.limited = true;
      return true;
    }
    case "allowed":
      if (settings.allowed !== null || isNumber(feature) || !Array.isArray(constraint["values"]) || !constraint["values"].every(isValue)) return false;
      settings.allowed = constraint["values"];
      settings.limited = true;
      return true;
    case "imputable":
      if (constraint["change"] !== undefined) return false;
      settings.fill = true;
      return true;
    default:
      return false;
  }
}

/** @param {any} distance @param {Question} question */
function takeDistance(distance, question) {
  if (typeof distance === "string") {
    question.distance = distance;
    return;
  }
  const { weights, ...rest } = distance;
  for (const [name, weight] of Object.entries(weights ?? {})) {
    const settings = question.settings.get(name);
    if (settings && typeof weight === "number") settings.weight = weight;
  }
  const plain = Object.entries(rest).every(([name, value]) => name === "norm" || Object.keys(Object(value)).length === 0);
  question.distance = plain && typeof rest.norm === "string" ? rest.norm : rest;
}

/** A constraint that has no button, in words. @param {Constraint} constraint */
export function wordsOf(constraint) {
  if (typeof constraint === "string") return constraint;
  if (constraint["kind"] === "max_changes" && typeof constraint["most"] === "number") return `at most ${constraint["most"]} changes`;
  if (constraint["kind"] === "actionable" && Array.isArray(constraint["features"])) return `only ${constraint["features"].join(", ")} may change`;
  return Object.values(constraint).map((value) => (typeof value === "object" ? JSON.stringify(value) : String(value))).join(" ");
}

/** How many conditions there are. @param {Question} question */
export function countOf(question) {
  return toQuery(question).origins.length;
}

/** Does an allowed list have this option? @param {Value[]} list @param {Value} option */
export const has = (list, option) => list.some((one) => same(one, option));

// ------------------------------------------------------------------ the link

/**
 * The part of the address after #: the model, the language and the question; no values of a person.
 * @param {string} model
 * @param {string} language
 * @param {Question} question
 */
export function toLink(model, language, question) {
  const { query } = toQuery(question);
  const parts = new URLSearchParams({ model, language, ways: String(question.ways), differ: question.differ, query: JSON.stringify(query) });
  return `#${parts}`;
}

/**
 * What a link asks for; null where there is none. Throws a sentence where it cannot be read.
 * @param {string} hash
 * @returns {{ model: string | null, language: string | null, ways: number, differ: string, query: Query } | null}
 */
export function fromLink(hash) {
  if (hash.length < 2) return null;
  if (hash.length > MAX_LINK) throw new Error(`${hash.length} characters`);
  const parts = new URLSearchParams(hash.slice(1));
  const text = parts.get("query");
  if (text === null && parts.get("model") === null) return null;
  const query = text === null ? {} : JSON.parse(text);
  if (isDeep(query, MAX_DEPTH)) throw new Error("query");
  const well = query !== null && typeof query === "object" && !Array.isArray(query);
  if (!well || !Array.isArray(query.constraints ?? []) || !(query.constraints ?? []).every(isConstraint)) throw new Error("query");
  const distance = query.distance ?? "l1";
  if (typeof distance !== "string" && (typeof distance !== "object" || Array.isArray(distance))) throw new Error("distance");
  const ways = Math.min(MAX_WAYS, Math.max(1, Math.round(Number(parts.get("ways") ?? 1)) || 1));
  const differ = DIFFER.find((one) => one === parts.get("differ")) ?? "features";
  return { model: parts.get("model"), language: parts.get("language"), ways, differ, query };
}

/** @param {unknown} value @param {number} most @returns {boolean} */
function isDeep(value, most) {
  if (typeof value !== "object" || value === null) return false;
  return most === 0 || Object.values(value).some((inner) => isDeep(inner, most - 1));
}

/** @param {unknown} value */
function isValue(value) {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

/** @param {unknown} value */
function isConstraint(value) {
  return typeof value === "string" || (typeof value === "object" && value !== null && !Array.isArray(value));
}
