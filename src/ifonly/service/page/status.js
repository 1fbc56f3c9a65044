// Status: the bounds of a search while one waits, whether the answer is out of date, and the answer in short while it is out of sight.

import { byId, setText, show } from "./dom.js";
import { label, rounded, shown, titled } from "./format.js";
import { t } from "./words.js";

/** @typedef {import("./service.js").ModelInfo} ModelInfo */

/** The answer in short, at the foot of a small screen while the answer itself is out of sight. @param {ModelInfo | null} about @param {import("./service.js").ExplainedAnswer | null} chosen */
export function strip(about, chosen) {
  const features = new Map(about?.schema.features.map((feature) => [feature.name, feature]));
  const changes = chosen?.answer.counterfactual ? chosen.answer.changes : [];
  const words = changes.map(({ feature, from, to }) => {
    const own = features.get(feature);
    return own ? `${label(own)} ${shown(own, from)} → ${shown(own, to)}` : "";
  });
  setText(byId("strip-decision"), about ? [chosen?.answer.decision_before, chosen?.answer.decision_after].map((one) => titled(about, one)).filter(Boolean).join(" → ") : "");
  setText(byId("strip-words"), words.length ? words.join(" · ") : byId("sentence").textContent ?? "");
}

/** While a field holds what is no value, the answer is about the last value that was one: that is marked and said. @param {Map<string, import("./feature.js").FeatureRow>} rows */
export function drawStale(rows) {
  const wrong = [...rows.values()].filter((row) => row.field?.hasAttribute("aria-invalid")).map((row) => row.name);
  setText(byId("stale"), wrong.length ? t("stale", { label: wrong.join(", ") }) : "");
  show(byId("stale"), wrong.length > 0);
  byId("answer").classList.toggle("outdated", wrong.length > 0);
}

/** The bounds that close in on an answer; null when there is one. @param {import("./service.js").Bounds | null} bounds */
export function drawBounds(bounds) {
  show(byId("bounds"), bounds !== null);
  byId("answer").classList.toggle("searching", bounds !== null);
  if (bounds === null) return;
  const { words, from, to } = boundsOf(bounds);
  setText(byId("bounds-words"), words);
  byId("bounds-open").style.setProperty("--at", String(from));
  byId("bounds-open").style.setProperty("--to", String(to));
}

/** @param {import("./service.js").Bounds} bounds */
function boundsOf({ lower, upper, nodes, seconds }) {
  const text = (/** @type {number} */ value) => rounded(value, 4);
  const gaps = { lower: text(lower), upper: text(upper ?? 0), nodes: text(nodes), seconds: text(Number(seconds.toFixed(1))) };
  if (nodes === 0 && lower === 0) return { words: t("searching"), from: 0, to: 1 };
  if (upper === null) return { words: t("still_searching_open", gaps), from: lower / (lower + 1), to: 1 };
  return { words: t("still_searching", gaps), from: upper > 0 ? lower / upper : 0, to: 1 };
}
