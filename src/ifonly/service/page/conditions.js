// The conditions of the question as a list that one can take from, and a rule in words, checked while it is written.

import { el, icon, byId, setText, set, show } from "./dom.js";
import { isNumber, label, labelled, named, number, shown } from "./format.js";
import { COSTS, countOf, free, wordsOf } from "./question.js";
import * as service from "./service.js";
import { currentLanguage, t } from "./words.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").Feature} Feature
 * @typedef {import("./question.js").Question} Question
 * @typedef {import("./question.js").FeatureSettings} FeatureSettings
 * @typedef {import("./question.js").Origin} Origin
 * @typedef {{ words: string, origin: Origin, remove: () => void }} Chip
 */

/** Milliseconds without a letter before a rule is checked. */
const PAUSE = 120;

export class Conditions {
  /**
   * @param {ModelInfo} about
   * @param {Question} question
   * @param {() => void} changed
   */
  constructor(about, question, changed) {
    this.about = about;
    this.question = question;
    this.changed = changed;
    this.input = /** @type {HTMLInputElement} */ (byId("rule"));
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
    show(byId("everybody"), about.rules.length > 0);
    byId("everybody-list").replaceChildren(...(about.rules_in[currentLanguage()] ?? about.rules.map((words) => labelled(about.schema.features, words))).map((words) => el("li", {}, words)));
    this.draw();
  }

  hint() {
    const numeric = this.about.schema.features.filter(isNumber);
    const one = numeric.at(-1) ?? this.about.schema.features[0];
    this.showMessage(one ? t("rule_hint", { example: isNumber(one) ? `${label(one)} only goes down` : `${label(one)} is fixed` }) : "");
  }

  /** @param {string} words @param {"" | "wrong" | "right"} [how] */
  showMessage(words, how = "") {
    const place = byId("rule-told");
    setText(place, words);
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
      const { words } = await service.rule({ model: this.about.model, text, language: currentLanguage() }, this.controller.signal);
      this.understood = { text, words };
      this.showMessage(t("rule_understood", { words: labelled(this.about.schema.features, words) }), "right");
    } catch (error) {
      if (service.isAbort(error)) return;
      this.showMessage(error instanceof service.ServiceError ? error.message : t("offline", { seconds: 1 }), "wrong");
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
    if (this.question.rules.includes(words)) return this.showMessage(t("rule_known"), "wrong");
    if (countOf(this.question) >= this.about.limits.constraints) return this.showMessage(t("rule_many", { count: this.about.limits.constraints }), "wrong");
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
    byId("chips").replaceChildren(...drawn);
    show(byId("conditions-none"), this.chips.length === 0);
  }

  /** @param {number} k */
  remove(k) {
    this.chips[k]?.remove();
    this.changed();
    const buttons = byId("chips").querySelectorAll("button");
    const next = buttons[Math.min(k, buttons.length - 1)];
    (next ?? this.input).focus();
  }

  clear() {
    for (const name of this.question.settings.keys()) this.reset(name, free());
    this.question.rules.length = 0;
    this.question.others.length = 0;
    this.changed();
    this.input.focus();
  }

  /** @param {string} name @param {Partial<FeatureSettings>} to */
  reset(name, to) {
    Object.assign(this.question.settings.get(name) ?? {}, to);
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
    const settings = this.question.settings.get(feature.name);
    if (!settings) return [];
    const name = { label: label(feature) };
    /** @type {Chip[]} */
    const chips = [];
    /** @param {string} words @param {Partial<FeatureSettings>} to */
    const chip = (words, to) => chips.push({ words, origin: { kind: "feature", name: feature.name }, remove: () => this.reset(feature.name, to) });
    if (settings.mode !== "free") chip(t(`chip_${settings.mode}`, name), { mode: "free" });
    const ends = { ...name, lower: shown(feature, settings.lower ?? 0), upper: shown(feature, settings.upper ?? 0) };
    const words = settings.lower === null ? "chip_at_most" : settings.upper === null ? "chip_at_least" : "chip_range";
    if (settings.lower !== null || settings.upper !== null) chip(t(words, ends), { lower: null, upper: null, limited: false });
    if (settings.allowed !== null) chip(t("chip_allowed", { ...name, values: settings.allowed.map((value) => shown(feature, value)).join(t("and")) }), { allowed: null, limited: false });
    if (settings.fill) chip(t("chip_fill", name), { fill: false });
    if (settings.weight !== COSTS.normal) {
      const cost = settings.weight === COSTS.easy ? t("cost_easy") : settings.weight === COSTS.hard ? t("cost_hard") : t("cost_own", { weight: number(settings.weight) });
      chip(t("chip_weight", { ...name, cost }), { weight: COSTS.normal });
    }
    return chips;
  }
}
