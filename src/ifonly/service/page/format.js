// Values as people write them in the language of the page, and numbers read back from what they write.

import { currentLanguage, t } from "./words.js";

/** @typedef {import("./service.js").Feature} Feature @typedef {import("./service.js").Value} Value */
/** @typedef {import("./service.js").NumberFeature} NumberFeature */

const SIGNS = "€$£¥₹";

/** @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/**
 * @param {Intl.NumberFormatOptions} options
 */
function format(options) {
  const name = currentLanguage() + JSON.stringify(options);
  let found = formats.get(name);
  if (!found) {
    found = new Intl.NumberFormat(currentLanguage(), options);
    formats.set(name, found);
  }
  return found;
}

/** All digits: a rounded number might not change the decision. @param {number} value */
export function number(value) {
  return format({ maximumFractionDigits: 17 }).format(value);
}

/** A number of a feature; amounts of money with cents have both: 7.30, not 7.3. @param {Feature} feature @param {number} value */
export function amount(feature, value) {
  const cents = SIGNS.includes(unitOf(feature) || "none") && !Number.isInteger(value);
  return cents ? format({ minimumFractionDigits: 2, maximumFractionDigits: 17 }).format(value) : number(value);
}

/** A few digits, for what is only looked at. @param {number} value */
export function rounded(value, digits = 3) {
  return format({ maximumSignificantDigits: digits }).format(value);
}

/** @param {number} value between 0 and 1 */
export function share(value) {
  return format({ style: "percent", maximumFractionDigits: value > 0.001 && value < 0.999 ? 1 : 3 }).format(value);
}

/** @param {number} seconds */
export function milliseconds(seconds) {
  const ms = seconds * 1000;
  return `${format({ maximumFractionDigits: ms < 10 ? 1 : 0 }).format(ms)} ms`;
}

/** @param {number} bytes */
export function size(bytes) {
  return bytes < 1e6 ? `${rounded(bytes / 1e3)} kB` : `${rounded(bytes / 1e6)} MB`;
}

/** What the schema says of a feature in the language of the page. @param {Feature} feature */
function own(feature) {
  return feature.translations?.[currentLanguage()] ?? {};
}

/** A title or a class of the model, as it is called in the language of the page. @param {import("./service.js").ModelInfo} about @param {Value | undefined} text */
export function titled(about, text) {
  const names = about.translations[currentLanguage()] ?? {};
  const own = text === null || text === undefined ? "" : String(text);
  return Object.hasOwn(names, own) ? names[own] ?? own : own;
}

/** @param {Feature} feature */
export function label(feature) {
  return own(feature).label || feature.label || feature.name;
}

/** @param {Feature} feature */
export function unitOf(feature) {
  return own(feature).unit || feature.unit || "";
}

/** The name of an option in the language of the page, or undefined. @param {Feature} feature @param {Value} option */
function optionName(feature, option) {
  const names = own(feature).options ?? {};
  const text = option === null ? "missing" : typeof option === "boolean" ? (option ? "True" : "False") : String(option);
  return Object.hasOwn(names, text) ? names[text] : undefined;
}

/** @param {Feature} feature @returns {feature is NumberFeature} */
export function isNumber(feature) {
  return feature.kind === "real" || feature.kind === "integer";
}

/** The options of a feature that has some. @param {Feature} feature @returns {Value[]} */
export function options(feature) {
  if (isNumber(feature)) return [];
  return feature.values ?? feature.levels ?? feature.categories ?? [false, true];
}

/** True is 1, but "1" is not. @param {Value} a @param {Value} b */
export function same(a, b) {
  if (a === null || b === null) return a === b;
  return typeof a === "string" || typeof b === "string" ? a === b : Number(a) === Number(b);
}

/** A value with its unit. @param {Feature} feature @param {Value} value */
export function shown(feature, value) {
  if (!isNumber(feature)) {
    const option = options(feature).find((one) => same(one, value)) ?? value;
    const name = optionName(feature, option);
    if (name !== undefined) return name;
    if (option !== null) return typeof option === "boolean" ? t(option ? "yes" : "no") : String(option);
  }
  if (value === null) return t("no_value");
  const text = typeof value === "number" ? amount(feature, value) : String(value);
  const unit = unitOf(feature);
  if (!unit) return text;
  if (SIGNS.includes(unit) && currentLanguage() === "en") return text.startsWith("-") ? `-${unit}${text.slice(1)}` : `${unit}${text}`;
  return `${text}${unit === "%" && currentLanguage() === "en" ? "" : "\u00a0"}${unit}`;
}

/**
 * Words of the service, which names features, as people name them.
 * @param {Feature[]} features
 * @param {string} words
 */
export function labelled(features, words) {
  return replaced(words, features.flatMap((feature) => (label(feature) !== feature.name ? [[feature.name, label(feature)]] : [])));
}

/**
 * A rule that says features as people name them, in the names that the service knows.
 * @param {Feature[]} features
 * @param {string} words
 */
export function named(features, words) {
  return replaced(words, features.flatMap((feature) => (label(feature) !== feature.name ? [[label(feature), /^\w+$/.test(feature.name) ? feature.name : `'${feature.name}'`]] : [])));
}

/** @param {string} words @param {string[][]} pairs what stands for what, the longest first */
function replaced(words, pairs) {
  const table = new Map(pairs.map(([from = "", to = ""]) => [from.toLowerCase(), to]));
  const longest = [...table.keys()].sort((a, b) => b.length - a.length).map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!longest.length) return words;
  return words.replace(new RegExp(`'(?:${longest.join("|")})'|(?<![\\w'])(?:${longest.join("|")})(?![\\w'])`, "giu"),
    (found) => table.get(found.replace(/^'|'$/g, "").toLowerCase()) ?? found);
}

/** Are the digits in groups of three? Otherwise the sign may be meant as the other language's decimal point. @param {string} whole @param {string} group */
function inThrees(whole, group) {
  const [first = "", ...rest] = whole.replace(/^[-+]/, "").split(group);
  return /^[1-9]\d{0,2}$/.test(first) && rest.length > 0 && rest.every((digits) => /^\d{3}$/.test(digits));
}

/**
 * The number that somebody wrote in the language of the page, or null. A whole number has no three decimals: in English,
 * 10.000 may be meant as ten thousand.
 * @param {string} text
 * @param {boolean} [whole]
 * @returns {number | null}
 */
export function parsed(text, whole = false) {
  const parts = format({ useGrouping: true }).formatToParts(-12345.6);
  const group = parts.find((part) => part.type === "group")?.value ?? ",";
  const decimal = parts.find((part) => part.type === "decimal")?.value ?? ".";
  const bare = text.trim().replaceAll("\u2212", "-").replace(/^([-+])\s+/, "$1").replace(/(\d)[\s\u00a0\u202f'](?=\d{3}(?!\d))/g, "$1");
  const [above = "", ...below] = bare.split(decimal);
  if (bare.includes(group) && !inThrees(above, group)) return null;
  if (whole && /^\d{3}$/.test(below.join()) && /^[-+]?[1-9]\d{0,2}$/.test(above)) return null;
  const plain = [above.replaceAll(group, ""), ...below].join(".");
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain)) return null;
  const value = Number(plain);
  return Number.isFinite(value) ? value : null;
}

/** The step of a number as a number; 0 where it has none. @param {NumberFeature} feature */
export function stepOf(feature) {
  const step = feature.step ?? (feature.kind === "integer" ? 1 : 0);
  if (typeof step === "number") return step;
  const [above, below] = step.split("/").map(Number);
  return (above ?? 0) / (below ?? 1);
}

/**
 * The value that a slider means: on the feature's grid, or rounded to what a hand can aim at.
 * @param {NumberFeature} feature
 * @param {number} value
 */
export function aimed(feature, value) {
  const width = feature.upper - feature.lower;
  const step = stepOf(feature) || niceStep(width / 400);
  const on = feature.lower + Math.round((value - feature.lower) / step) * step;
  return Math.min(feature.upper, Math.max(feature.lower, Number(on.toFixed(12))));
}

/** 1, 2 or 5 times a power of ten, at least as large. @param {number} least */
function niceStep(least) {
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  const times = [1, 2, 5, 10].find((k) => k * power >= least) ?? 10;
  return times * power;
}
