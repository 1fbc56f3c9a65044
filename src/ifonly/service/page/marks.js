// Marks: where a value lies in its range, a change as a bar, the score along the way.

import { el, set, svg } from "./dom.js";
import { isNumber, label, options, rounded, same, shown } from "./format.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").Feature} Feature
 * @typedef {import("./service.js").NumberFeature} NumberFeature
 * @typedef {import("./service.js").Value} Value
 * @typedef {import("./service.js").Change} Change
 * @typedef {import("./service.js").Path} Path
 */

/** Where a number lies between its bounds, 0 to 1. @param {NumberFeature} feature @param {number} value */
function fraction(feature, value) {
  const width = feature.upper - feature.lower;
  return width > 0 ? Math.min(1, Math.max(0, (value - feature.lower) / width)) : 0.5;
}

/**
 * Put a mark at a value of a slider's track, or over a stretch of it.
 * @param {HTMLElement} mark
 * @param {NumberFeature} feature
 * @param {number} from
 * @param {number} [to]
 */
export function place(mark, feature, from, to) {
  mark.style.setProperty("--at", String(fraction(feature, from)));
  if (to !== undefined) mark.style.setProperty("--to", String(fraction(feature, to)));
}

/** A change: its range, where the person is, where the answer is. */
export class ChangeBar {
  /** @param {Feature} feature */
  constructor(feature) {
    this.feature = feature;
    this.from = el("i", { class: "dot from" });
    this.to = el("i", { class: "dot to" });
    this.link = el("i", { class: "link" });
    this.element = el("div", { class: "bar", role: "img" }, el("i", { class: "rail" }), ...this.stops(), this.link, this.from, this.to);
    this.ends = isNumber(feature)
      ? el("div", { class: "bar-ends", "aria-hidden": "true" }, el("span", {}, shown(feature, feature.lower)), el("span", {}, shown(feature, feature.upper)))
      : null;
  }

  stops() {
    const own = options(this.feature);
    return own.map((_, k) => {
      const stop = el("i", { class: "stop" });
      stop.style.setProperty("--at", String(own.length > 1 ? k / (own.length - 1) : 0.5));
      return stop;
    });
  }

  /** @param {Value} value */
  at(value) {
    if (isNumber(this.feature)) return typeof value === "number" ? fraction(this.feature, value) : null;
    const own = options(this.feature);
    const k = own.findIndex((option) => same(option, value));
    return k < 0 ? null : own.length > 1 ? k / (own.length - 1) : 0.5;
  }

  /** @param {Change} change */
  draw(change) {
    const [from, to] = [this.at(change.from), this.at(change.to)];
    for (const [dot, at] of /** @type {[HTMLElement, number | null][]} */ ([[this.from, from], [this.to, to]])) {
      dot.toggleAttribute("hidden", at === null);
      dot.style.setProperty("--at", String(at ?? 0));
    }
    this.link.style.setProperty("--at", String(Math.min(from ?? to ?? 0, to ?? 0)));
    this.link.style.setProperty("--to", String(Math.max(from ?? to ?? 0, to ?? 0)));
    const words = { label: label(this.feature), before: shown(this.feature, change.from), after: shown(this.feature, change.to) };
    const feature = this.feature;
    set(this.element, { "aria-label": isNumber(feature)
      ? t("change_picture", { ...words, lower: shown(feature, feature.lower), upper: shown(feature, feature.upper) })
      : t("option_picture", words) });
  }
}

const WIDTH = 1000;
const HEIGHT = 260;
const MARGIN = 18;
/** How much of the picture is beyond the boundary, at least: an answer lies just across it. */
const HEADROOM = 0.22;

/**
 * The lead of the answer's decision along the way, with the boundary at 0.
 * @param {HTMLElement} place
 * @param {Path} path
 */
export function drawPath(place, path) {
  const least = Math.min(0, ...path.score_margin);
  const most = Math.max(-HEADROOM * least, ...path.score_margin);
  const height = Math.max(most - least, 1e-12);
  const x = (/** @type {number} */ k) => (WIDTH * k) / Math.max(1, path.score_margin.length - 1);
  const y = (/** @type {number} */ lead) => MARGIN + ((HEIGHT - 2 * MARGIN) * (most - lead)) / height;
  const line = path.score_margin.map((lead, k) => `${x(k).toFixed(1)},${y(lead).toFixed(1)}`).join(" ");
  const zero = y(0).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": t("path_picture", { decision: String(path.decision), before: rounded(path.score_margin[0] ?? 0), after: rounded(path.score_margin.at(-1) ?? 0) }) },
    svg("rect", { class: "won", x: 0, y: 0, width: WIDTH, height: zero }),
    ...path.changes.slice(1).map(([at]) => svg("line", { class: "turn", x1: x(at), x2: x(at), y1: 0, y2: HEIGHT })),
    svg("line", { class: "boundary", x1: 0, x2: WIDTH, y1: zero, y2: zero }),
    svg("polyline", { class: "curve", points: line }));
  const marks = [spot("start", 0, y(path.score_margin[0] ?? 0)), spot("end", WIDTH, y(path.score_margin.at(-1) ?? 0))];
  const boundary = el("span", { class: "boundary-word", "aria-hidden": "true" }, t("boundary"));
  boundary.style.top = `${(100 * y(0)) / HEIGHT}%`;
  place.replaceChildren(picture, ...marks, boundary, ...turns(path, x));
}

/** @param {string} name @param {number} x @param {number} y */
function spot(name, x, y) {
  const mark = el("i", { class: `spot ${name}`, "aria-hidden": "true" });
  mark.style.left = `${(100 * x) / WIDTH}%`;
  mark.style.top = `${(100 * y) / HEIGHT}%`;
  return mark;
}

/** The numbers of the changes, each in the middle of its stretch. @param {Path} path @param {(k: number) => number} x */
function turns(path, x) {
  if (path.changes.length < 2) return [];
  return path.changes.map(([at], k) => {
    const end = path.changes[k + 1]?.[0] ?? path.score_margin.length - 1;
    const mark = el("span", { class: "turn-word", "aria-hidden": "true" }, k + 1);
    mark.style.left = `${(100 * x((at + end) / 2)) / WIDTH}%`;
    return mark;
  });
}
