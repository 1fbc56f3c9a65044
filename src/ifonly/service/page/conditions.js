// The conditions of the question as a list that one can take from, and a rule in words, checked while it is written.

import { el, icon, part, say, set, show } from "./dom.js";
import { isNumber, label, labelled, named, number, shown } from "./format.js";
import { COSTS, countOf, free, wordsOf } from "./question.js";
import * as service from "./service.js";
import { spoken, t } from "./words.js";

/**
 * @typedef {import("./service.js").About} About
 * @typedef {import("./service.js").Feature} Feature
 * @typedef {import("./question.js").Question} Question
 * @typedef {import("./question.js").Will} Will
 * @typedef {import("./question.js").Origin} Origin
 * @typedef {{ words: string, origin: Origin, remove: () => void }} Chip
 */

/** Milliseconds without a letter before a rule is checked. */
const PAUSE = 120;

export class Conditions {
  /**
   * @param {About} about
   * @param {Question} question
   * @param {() => void} changed
   */
  constructor(about, question, changed) {
    this.about = about;
    this.question = question;
    this.changed = changed;
    this.input = /** @type {HTMLInputElement} */ (part("rule"));
    this.controller = new AbortController();
    /** @type {{ text: string, words: string } | null} the rule that was understood last, and in which words */
    this.understood = null;
    /** @type {number | undefined} */
    this.timer = undefined;
    /** @type {Chip[]} */
    this.chips = [];
    this.input.value = "";
    this.input.maxLength = about.limits.text;
    this.hint();
    show(part("everybody"), about.rules.length > 0);
    part("everybody-list").replaceChildren(...about.rules.map((words) => el("li", {}, labelled(about.schema.features, words))));
    this.draw();
  }

  hint() {
    const numeric = this.about.schema.features.filter(isNumber);
    const one = numeric.at(-1) ?? this.about.schema.features[0];
    this.tell(one ? t("rule_hint", { example: isNumber(one) ? `${label(one)} only goes down` : `${label(one)} is fixed` }) : "");
  }

  /** @param {string} words @param {"" | "wrong" | "right"} [how] */
  tell(words, how = "") {
    const place = part("rule-told");
    say(place, words);
    place.className = how === "wrong" ? "wrong" : how === "right" ? "right" : "soft";
    set(this.input, { "aria-invalid": how === "wrong" ? "true" : null });
  }

  /** A letter was typed. */
  typed() {
    clearTimeout(this.timer);
    this.understood = null;
    if (!this.input.value.trim()) {
      this.controller.abort();
      this.hint();
      return;
    }
    this.timer = setTimeout(() => void this.check(), PAUSE);
  }

  /** Is the rule understood? What is wrong with it is said beside it. */
  async check() {
    clearTimeout(this.timer);
    this.controller.abort();
    this.controller = new AbortController();
    const text = this.text;
    try {
      const { words } = await service.rule({ model: this.about.model, text, language: spoken() }, this.controller.signal);
      this.understood = { text, words };
      this.tell(t("rule_understood", { words: labelled(this.about.schema.features, words) }), "right");
    } catch (error) {
      if (service.isAbort(error)) return;
      this.tell(error instanceof service.Refused ? error.message : t("offline", { seconds: 1 }), "wrong");
    }
  }

  /** What is written, in the names that the service knows. */
  get text() {
    return named(this.about.schema.features, this.input.value.trim());
  }

  async add() {
    const { text } = this;
    if (!text) return;
    if (this.understood?.text !== text) await this.check();
    if (this.understood?.text !== text) return;
    const { words } = this.understood;
    if (this.question.rules.includes(words)) return this.tell(t("rule_known"), "wrong");
    if (countOf(this.question) >= this.about.limits.constraints) return this.tell(t("rule_many", { count: this.about.limits.constraints }), "wrong");
    this.question.rules.push(words);
    this.input.value = "";
    this.understood = null;
    this.hint();
    this.changed();
    this.input.focus();
  }

  // ---------------------------------------------------------------- the list

  /** The list, each with the sentence that the service refused it with. @param {Map<string, string>} [wrong] by origin */
  draw(wrong = new Map()) {
    this.chips = this.all();
    const drawn = this.chips.map((chip, k) => {
      const sentence = wrong.get(JSON.stringify(chip.origin));
      return el("li", { class: sentence ? "chip bad" : "chip" }, el("span", {}, chip.words),
        el("button", { type: "button", "aria-label": t("remove", { what: chip.words }), click: () => this.remove(k) }, icon("remove")),
        sentence ? el("p", { class: "wrong" }, sentence) : null);
    });
    if (drawn.length > 1) drawn.push(el("li", {}, el("button", { type: "button", class: "plain", click: () => this.clear() }, t("clear"))));
    part("chips").replaceChildren(...drawn);
    show(part("conditions-none"), this.chips.length === 0);
  }

  /** @param {number} k */
  remove(k) {
    this.chips[k]?.remove();
    this.changed();
    const buttons = part("chips").querySelectorAll("button");
    const next = buttons[Math.min(k, buttons.length - 1)];
    (next ?? this.input).focus();
  }

  clear() {
    for (const name of this.question.will.keys()) this.reset(name, free());
    this.question.rules.length = 0;
    this.question.others.length = 0;
    this.changed();
    this.input.focus();
  }

  /** @param {string} name @param {Partial<Will>} to */
  reset(name, to) {
    Object.assign(this.question.will.get(name) ?? {}, to);
  }

  /** @returns {Chip[]} */
  all() {
    const { rules, others } = this.question;
    return [
      ...this.about.schema.features.flatMap((feature) => this.ofFeature(feature)),
      ...rules.map((words, at) => ({ words: labelled(this.about.schema.features, words), origin: /** @type {Origin} */ ({ kind: "rule", at }), remove: () => void rules.splice(at, 1) })),
      ...others.map((other, at) => ({ words: wordsOf(other), origin: /** @type {Origin} */ ({ kind: "other", at }), remove: () => void others.splice(at, 1) })),
    ];
  }

  /** @param {Feature} feature @returns {Chip[]} */
  ofFeature(feature) {
    const will = this.question.will.get(feature.name);
    if (!will) return [];
    const name = { label: label(feature) };
    /** @type {Chip[]} */
    const chips = [];
    /** @param {string} words @param {Partial<Will>} to */
    const chip = (words, to) => chips.push({ words, origin: { kind: "feature", name: feature.name }, remove: () => this.reset(feature.name, to) });
    if (will.mode !== "free") chip(t(`chip_${will.mode}`, name), { mode: "free" });
    const ends = { ...name, lower: shown(feature, will.lower ?? 0), upper: shown(feature, will.upper ?? 0) };
    const words = will.lower === null ? "chip_at_most" : will.upper === null ? "chip_at_least" : "chip_range";
    if (will.lower !== null || will.upper !== null) chip(t(words, ends), { lower: null, upper: null, limited: false });
    if (will.allowed !== null) chip(t("chip_allowed", { ...name, values: will.allowed.map((value) => shown(feature, value)).join(t("and")) }), { allowed: null, limited: false });
    if (will.fill) chip(t("chip_fill", name), { fill: false });
    if (will.weight !== COSTS.normal) {
      const cost = will.weight === COSTS.easy ? t("cost_easy") : will.weight === COSTS.hard ? t("cost_hard") : t("cost_own", { weight: number(will.weight) });
      chip(t("chip_weight", { ...name, cost }), { weight: COSTS.normal });
    }
    return chips;
  }
}
