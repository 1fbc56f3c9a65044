// What the service says about a model, as the page lays it out.

import { el, byId } from "./dom.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").Feature} Feature
 * @typedef {import("./service.js").Row} Row
 * @typedef {import("./question.js").Question} Question
 */

/**
 * The features by group, as the service names the groups; those of none come last.
 * @param {ModelInfo} about
 * @returns {{ title: string, features: Feature[] }[]}
 */
export function grouped(about) {
  const left = new Map(about.schema.features.map((feature) => [feature.name, feature]));
  const groups = (about.groups ?? []).map(({ title, features }) => ({ title, features: features.flatMap((name) => {
    const feature = left.get(name);
    left.delete(name);
    return feature ? [feature] : [];
  }) }));
  groups.push({ title: groups.length ? t("more") : "", features: [...left.values()] });
  return groups.filter(({ features }) => features.length > 0);
}

/**
 * What may be meant by nearest; a distance of a link that has no button is one of its own.
 * @param {Question} question
 * @returns {{ options: [string, string][], value: string }}
 */
export function nearOptions(question) {
  /** @type {[string, string][]} */
  const options = [["l1", t("near_l1")], ["fewest", t("near_fewest")], ["linf", t("near_linf")]];
  const value = question.fewest && question.distance === "l1" ? "fewest" : question.distance;
  if (options.some(([name]) => name === value)) return { options, value };
  return { options: [...options, ["own", t("near_own")]], value: "own" };
}

/** @param {string} id */
export function select(id) {
  return /** @type {HTMLSelectElement} */ (byId(id));
}

/** @param {string} id @param {[string, string][]} options @param {string} value */
export function fillSelect(id, options, value) {
  select(id).replaceChildren(...options.map(([own, text]) => el("option", { value: own }, text)));
  select(id).value = value;
}

/** A row in the middle of everything, where the desk has no examples. @param {ModelInfo} about @returns {Row} */
export function defaultRow(about) {
  return Object.fromEntries(about.schema.features.map((feature) => [feature.name, "lower" in feature ? Math.round((feature.lower + feature.upper) / 2) : (feature.values ?? feature.levels ?? feature.categories ?? [false])[0] ?? null]));
}
