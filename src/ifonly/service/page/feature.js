// One feature of the person: its value, by slider, field or buttons, and what may change of it, one click each.

import { costIcon, el, newId, icon, setText, segments, set, show } from "./dom.js";
import { aimed, amount, isNumber, label, number, options, parsed, same, shown, stepOf, unitOf } from "./format.js";
import { Limits } from "./limits.js";
import { COSTS } from "./question.js";
import { place } from "./marks.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").Feature} Feature
 * @typedef {import("./service.js").NumberFeature} NumberFeature
 * @typedef {import("./service.js").Value} Value
 * @typedef {import("./question.js").FeatureSettings} FeatureSettings
 * @typedef {{ row: (name: string, value: Value) => void, validity: () => void, settings: (name: string) => void }} Changed
 */

const MAX_BUTTONS = 5;
const MAX_LETTERS = 44;
const LONG = 20;

export class FeatureRow {
  /**
   * @param {Feature} feature
   * @param {Value} value
   * @param {FeatureSettings} settings
   * @param {Changed} changed
   */
  constructor(feature, value, settings, changed) {
    this.feature = feature;
    this.value = value;
    this.settings = settings;
    this.changed = changed;
    this.id = newId("feature");
    this.name = label(feature);
    this.becomes = el("span", { class: "becomes" });
    this.error = el("p", { class: "wrong", id: `${this.id}-wrong`, hidden: true });
    /** @type {HTMLInputElement | null} */
    this.slider = null;
    /** @type {HTMLInputElement | null} */
    this.field = null;
    /** @type {HTMLInputElement | null} */
    this.unknown = null;
    this.track = el("div", { class: "track" });
    this.ghost = el("i", { class: "ghost", hidden: true });
    this.span = el("i", { class: "span", hidden: true });
    /** @type {Map<string, HTMLButtonElement>} */
    this.buttons = new Map();
    this.limits = new Limits(feature, settings, () => this.settingsChanged());
    const control = isNumber(feature) ? this.numeric(feature) : this.choice(feature);
    this.element = el("li", { class: `feature ${isNumber(feature) ? "number" : control.long ? "choice long" : "choice"}`, "data-feature": feature.name },
      el("div", { class: "head" }, control.label, this.becomes), control.entry, this.tools(), control.below, this.limits.element, this.error);
    this.refresh();
  }

  /** @param {NumberFeature} feature */
  numeric(feature) {
    const field = el("input", { id: this.id, type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false",
      "aria-describedby": `${this.id}-wrong`, input: () => this.typed(feature), blur: () => this.refresh() });
    const step = stepOf(feature);
    const slider = el("input", { type: "range", min: feature.lower, max: feature.upper, step: step || "any",
      "aria-label": t("value_of", { label: this.name }), input: () => this.take(aimed(feature, Number(slider.value))) });
    [this.field, this.slider] = [field, slider];
    const unit = unitOf(feature) ? el("span", { class: "unit", "aria-hidden": "true" }, unitOf(feature)) : null;
    const entry = el("div", { class: "entry" }, unit, field);
    if (feature.missing) entry.append(this.unknownBox(feature));
    this.track.append(el("i", { class: "rail" }), this.span, this.ghost, slider);
    return { label: el("label", { for: this.id }, this.name, unitOf(feature) ? el("span", { class: "unseen" }, ` (${unitOf(feature)})`) : null), entry, below: this.track, long: false };
  }

  /** @param {NumberFeature} feature */
  unknownBox(feature) {
    const box = el("input", { type: "checkbox", change: () => this.take(box.checked ? null : aimed(feature, (feature.lower + feature.upper) / 2)) });
    this.unknown = box;
    return el("label", { class: "check" }, box, t("unknown_value"));
  }

  /** @param {Feature} feature */
  choice(feature) {
    const own = options(feature);
    const texts = own.map((option) => shown(feature, option));
    const short = own.length <= MAX_BUTTONS && texts.join("").length <= MAX_LETTERS;
    const taken = own.find((option) => same(option, this.value));
    if (short) {
      const group = segments({ name: this.id, label: this.name, options: own.map((value, k) => ({ value, text: texts[k] ?? "" })),
        value: taken ?? null, changed: (value) => this.take(value) });
      return { label: el("span", { class: "label", "aria-hidden": "true" }, this.name), entry: el("div", { class: "entry" }), below: group, long: texts.join("").length > LONG };
    }
    const select = el("select", { id: this.id, change: () => this.take(own[select.selectedIndex] ?? null) }, ...texts.map((text) => el("option", {}, text)));
    select.selectedIndex = own.findIndex((option) => same(option, this.value));
    return { label: el("label", { for: this.id }, this.name), entry: el("div", { class: "entry" }), below: el("div", { class: "select" }, select), long: true };
  }

  /** Lock, only up, only down, limits, cost: one button each. */
  tools() {
    const ordered = isNumber(this.feature) || this.feature.kind === "ordinal";
    const several = isNumber(this.feature) || options(this.feature).length > 2;
    const group = el("div", { class: "tools", role: "group", "aria-label": t("tools", { label: this.name }) });
    /** @type {["lock" | "up" | "down", "fixed" | "only_up" | "only_down", string][]} */
    const modes = [["lock", "fixed", "lock"], ["up", "only_up", "only_up"], ["down", "only_down", "only_down"]];
    for (const [picture, mode, words] of modes) {
      if (mode !== "fixed" && !ordered) continue;
      group.append(this.button(mode, icon(picture), t(words, { label: this.name }), () => {
        this.settings.mode = this.settings.mode === mode ? "free" : mode;
      }));
    }
    if (several) {
      group.append(this.button("limit", icon("limit"), t("limit", { label: this.name }), () => this.limits.toggle()));
      this.buttons.get("limit")?.setAttribute("aria-controls", this.limits.element.id);
    }
    group.append(this.button("cost", costIcon(1), "", () => {
      const at = Object.values(COSTS).indexOf(this.settings.weight);
      this.settings.weight = [COSTS.normal, COSTS.hard, COSTS.easy][[1, 2, 0].indexOf(at) + 1] ?? COSTS.normal;
    }));
    if (isNumber(this.feature) && this.feature.missing) {
      group.append(this.button("fill", document.createTextNode(t("fill_in")), "", () => {
        this.settings.fill = !this.settings.fill;
      }));
    }
    return group;
  }

  /** @param {string} name @param {Node} picture @param {string} words @param {() => void} act */
  button(name, picture, words, act) {
    const button = el("button", { type: "button", class: `tool ${name}`, "aria-label": words || null, title: words || null, click: () => {
      act();
      this.settingsChanged();
    } }, picture);
    this.buttons.set(name, button);
    return button;
  }

  settingsChanged() {
    this.refresh();
    this.changed.settings(this.feature.name);
  }

  /** @param {NumberFeature} feature */
  typed(feature) {
    const value = parsed(this.field?.value ?? "", feature.kind === "integer");
    if (value === null || value < feature.lower || value > feature.upper) {
      this.wrong(t("between", { lower: shown(feature, feature.lower), upper: shown(feature, feature.upper) }));
      return;
    }
    this.take(value);
  }

  /** @param {Value} value */
  take(value) {
    this.value = value;
    this.wrong("");
    this.refresh();
    this.changed.row(this.feature.name, value);
  }

  /** @param {string} sentence */
  wrong(sentence) {
    setText(this.error, sentence);
    show(this.error, sentence !== "");
    if (this.field) set(this.field, { "aria-invalid": sentence ? "true" : null });
    this.changed.validity();
  }

  /** Everything as the value and the will are. */
  refresh() {
    const { feature, value, settings } = this;
    if (isNumber(feature) && this.field && this.slider) {
      const known = typeof value === "number";
      const text = known ? amount(feature, value) : "";
      if (document.activeElement !== this.field && !this.field.hasAttribute("aria-invalid")) this.field.value = text;
      if (known) this.slider.value = String(value);
      set(this.slider, { "aria-valuetext": shown(feature, value) });
      this.slider.disabled = !known;
      this.field.disabled = !known;
      if (this.unknown) this.unknown.checked = !known;
      show(this.span, settings.lower !== null || settings.upper !== null);
      place(this.span, feature, settings.lower ?? feature.lower, settings.upper ?? feature.upper);
    }
    for (const [name, button] of this.buttons) this.pressed(name, button);
    set(this.element ?? this.track, { "data-mode": settings.mode });
    this.limits.refresh();
  }

  /** @param {string} name @param {HTMLButtonElement} button */
  pressed(name, button) {
    if (name === "cost") {
      const names = /** @type {const} */ (["easy", "normal", "hard"]);
      const at = names.findIndex((one) => COSTS[one] === this.settings.weight);
      const cost = names[at] ? t(`cost_${names[at]}`) : t("cost_own", { weight: number(this.settings.weight) });
      const words = t("cost", { label: this.name, cost });
      if (button.title === words) return;
      button.replaceChildren(costIcon(at < 0 ? 1 : at));
      set(button, { title: words, "aria-label": words, "data-on": at === 1 ? null : "" });
    } else if (name === "limit") {
      set(button, { "aria-expanded": String(this.settings.limited), "data-on": this.settings.limited ? "" : null });
    } else {
      const on = name === "fill" ? this.settings.fill : this.settings.mode === name;
      set(button, { "aria-pressed": String(on), "data-on": on ? "" : null });
      if (name === "fill") show(button, this.value === null);
    }
  }

  /** What the answer has here; undefined where it changes nothing. @param {Value | undefined} value */
  answered(value) {
    const differs = value !== undefined;
    set(this.element, { "data-changed": differs ? "" : null });
    setText(this.becomes, differs ? t("becomes", { value: shown(this.feature, value) }) : "");
    if (!isNumber(this.feature)) return;
    const marked = typeof value === "number";
    show(this.ghost, marked);
    if (marked) place(this.ghost, this.feature, value);
  }
}
