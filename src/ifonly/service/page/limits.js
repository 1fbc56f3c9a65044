// The limits of a feature: a least and a greatest number by two thumbs and two fields, or the options that would do.

import { el, newId, set, show } from "./dom.js";
import { aimed, amount, isNumber, label, options, parsed, shown, stepOf, unitOf } from "./format.js";
import { place } from "./marks.js";
import { has } from "./question.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").Feature} Feature
 * @typedef {import("./service.js").NumberFeature} NumberFeature
 * @typedef {import("./service.js").Value} Value
 * @typedef {import("./question.js").FeatureSettings} FeatureSettings
 * @typedef {{ thumb: HTMLInputElement, field: HTMLInputElement }} End
 */

export class Limits {
  /**
   * @param {Feature} feature
   * @param {FeatureSettings} settings
   * @param {() => void} changed
   */
  constructor(feature, settings, changed) {
    this.feature = feature;
    this.settings = settings;
    this.changed = changed;
    /** @type {{ least: End, most: End, span: HTMLElement } | null} */
    this.ends = null;
    /** @type {[HTMLInputElement, Value][]} */
    this.boxes = [];
    this.element = el("div", { class: "limits", id: newId("limits"), hidden: true, role: "group", "aria-label": t("limits_of", { label: label(feature) }) });
  }

  /** Limits on or off. Switched on, they exclude nothing yet. */
  toggle() {
    this.settings.limited = !this.settings.limited;
    if (!this.settings.limited) [this.settings.lower, this.settings.upper, this.settings.allowed] = [null, null, null];
  }

  refresh() {
    show(this.element, this.settings.limited);
    if (!this.settings.limited) return;
    if (!this.element.firstChild) this.build();
    if (isNumber(this.feature) && this.ends) this.drawn(this.feature, this.ends);
    for (const [box, option] of this.boxes) box.checked = this.settings.allowed === null || has(this.settings.allowed, option);
  }

  build() {
    if (isNumber(this.feature)) this.buildEnds(this.feature);
    else this.buildBoxes();
  }

  /** @param {NumberFeature} feature */
  buildEnds(feature) {
    const span = el("i", { class: "span" });
    const least = this.end(feature, "least_of", (value) => {
      this.settings.lower = value <= feature.lower ? null : Math.min(value, this.settings.upper ?? feature.upper);
    });
    const most = this.end(feature, "most_of", (value) => {
      this.settings.upper = value >= feature.upper ? null : Math.max(value, this.settings.lower ?? feature.lower);
    });
    this.ends = { least, most, span };
    const unit = unitOf(feature) ? el("span", { class: "unit", "aria-hidden": "true" }, unitOf(feature)) : null;
    this.element.append(
      el("div", { class: "track double" }, el("i", { class: "rail" }), span, least.thumb, most.thumb),
      el("div", { class: "ends" }, el("span", {}, t("from")), least.field, el("span", {}, t("to")), most.field, unit));
  }

  /**
   * @param {NumberFeature} feature
   * @param {string} words
   * @param {(value: number) => void} take
   * @returns {End}
   */
  end(feature, words, take) {
    const name = t(words, { label: label(feature) });
    const changed = (/** @type {number} */ value) => {
      take(value);
      this.changed();
    };
    const thumb = el("input", { type: "range", min: feature.lower, max: feature.upper, step: stepOf(feature) || "any", "aria-label": name,
      input: () => changed(aimed(feature, Number(thumb.value))) });
    const field = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": name, change: () => {
      const value = parsed(field.value, feature.kind === "integer");
      if (value === null) this.refresh();
      else changed(Math.min(feature.upper, Math.max(feature.lower, value)));
    } });
    return { thumb, field };
  }

  /** @param {NumberFeature} feature @param {{ least: End, most: End, span: HTMLElement }} ends */
  drawn(feature, { least, most, span }) {
    const lower = this.settings.lower ?? feature.lower;
    const upper = this.settings.upper ?? feature.upper;
    for (const [end, value] of /** @type {[End, number][]} */ ([[least, lower], [most, upper]])) {
      end.thumb.value = String(value);
      set(end.thumb, { "aria-valuetext": shown(feature, value) });
      if (document.activeElement !== end.field || end.field.value === "") end.field.value = amount(feature, value);
    }
    least.thumb.classList.toggle("front", lower > (feature.lower + feature.upper) / 2);
    place(span, feature, lower, upper);
  }

  buildBoxes() {
    const own = options(this.feature);
    this.boxes = own.map((option) => [el("input", { type: "checkbox", change: () => this.boxed() }), option]);
    this.element.append(el("p", {}, t("options_of", { label: label(this.feature) })),
      el("div", { class: "boxes" }, ...this.boxes.map(([box, option]) => el("label", { class: "check" }, box, shown(this.feature, option)))));
  }

  boxed() {
    const chosen = this.boxes.filter(([box]) => box.checked).map(([, option]) => option);
    this.settings.allowed = chosen.length === this.boxes.length ? null : chosen;
    this.changed();
  }
}
