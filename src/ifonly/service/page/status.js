// How it stands while one waits or looks elsewhere: bounds that close in, the answer in short.

import { part, say, show } from "./dom.js";
import { label, rounded, shown } from "./format.js";
import { t } from "./words.js";

/** @typedef {import("./service.js").About} About */

/** The answer in short, at the foot of a small screen while the answer itself is out of sight. @param {About | null} about @param {import("./service.js").Told | null} told */
export function strip(about, told) {
  const features = new Map(about?.schema.features.map((feature) => [feature.name, feature]));
  const changes = told?.answer.counterfactual ? told.answer.changes : [];
  const words = changes.map(({ feature, from, to }) => {
    const own = features.get(feature);
    return own ? `${label(own)} ${shown(own, from)} → ${shown(own, to)}` : "";
  });
  say(part("strip-decision"), [told?.answer.decision_before, told?.answer.decision_after].filter((one) => one !== null && one !== undefined).join(" → "));
  say(part("strip-words"), words.length ? words.join(" · ") : part("sentence").textContent ?? "");
}

/** The bounds that close in on an answer; null when there is one. @param {import("./service.js").Bounds | null} bounds */
export function drawBounds(bounds) {
  show(part("bounds"), bounds !== null);
  part("answer").classList.toggle("searching", bounds !== null);
  if (bounds === null) return;
  const { words, from, to } = boundsOf(bounds);
  say(part("bounds-words"), words);
  part("bounds-open").style.setProperty("--at", String(from));
  part("bounds-open").style.setProperty("--to", String(to));
}

/** @param {import("./service.js").Bounds} bounds */
function boundsOf({ lower, upper, nodes, seconds }) {
  const told = (/** @type {number} */ value) => rounded(value, 4);
  const gaps = { lower: told(lower), upper: told(upper ?? 0), nodes: told(nodes), seconds: told(Number(seconds.toFixed(1))) };
  if (nodes === 0 && lower === 0) return { words: t("searching"), from: 0, to: 1 };
  if (upper === null) return { words: t("still_searching_open", gaps), from: lower / (lower + 1), to: 1 };
  return { words: t("still_searching", gaps), from: upper > 0 ? lower / upper : 0, to: 1 };
}
