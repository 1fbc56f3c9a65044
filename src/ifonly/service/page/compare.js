// The alternatives side by side: a row per feature that any of them changes, a column per way.

import { el } from "./dom.js";
import { label, number, rounded, same, shown, titled } from "./format.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").ExplainedAnswer} ExplainedAnswer
 */

/**
 * @param {ModelInfo} about
 * @param {ExplainedAnswer[]} ways
 * @param {number} chosen
 */
export function comparisonTable(about, ways, chosen) {
  const changed = new Set(ways.flatMap(({ answer }) => answer.changes.map((change) => change.feature)));
  const before = ways[0]?.answer.factual ?? {};
  const head = el("tr", {}, el("th", { scope: "col" }, t("feature")), el("th", { scope: "col" }, t("at_present")),
    ...ways.map((_, k) => el("th", { scope: "col", class: k === chosen ? "chosen" : null }, t("way", { number: k + 1 }))));
  const rows = about.schema.features.filter((feature) => changed.has(feature.name)).map((feature) => {
    const now = before[feature.name] ?? null;
    return el("tr", {}, el("th", { scope: "row" }, label(feature)), el("td", {}, shown(feature, now)), ...ways.map(({ answer }, k) => {
      const value = answer.counterfactual?.[feature.name] ?? null;
      const differs = !same(value, now);
      const mark = k === chosen ? " chosen" : "";
      return differs ? el("td", { class: `differs${mark}` }, shown(feature, value)) : el("td", { class: `same${mark}` }, el("span", { "aria-hidden": "true" }, "·"), el("span", { class: "unseen" }, t("same")));
    }));
  });
  /** @param {string} words @param {string} now @param {(way: ExplainedAnswer) => string} of */
  const sum = (words, now, of) => el("tr", { class: "sum" }, el("th", { scope: "row" }, words), el("td", {}, now),
    ...ways.map((way, k) => el("td", { class: k === chosen ? "chosen" : null }, of(way))));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows,
    sum(t("changed_features"), "", ({ answer }) => number(answer.changes.length)),
    sum(t("distance"), "", ({ answer }) => (answer.distance === null ? "" : rounded(answer.distance, 4))),
    sum(t("decision"), titled(about, ways[0]?.answer.decision_before), ({ answer }) => titled(about, answer.decision_after))));
}
