// The cheapest action where features follow from causes: what to do, and what follows from it. It is asked for after the
// answer, of a person and a question that have rested.

import { byId, el, setText, set, show } from "./dom.js";
import { label, shown } from "./format.js";
import * as service from "./service.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").Change} Change
 * @typedef {import("./service.js").ExplainRequest} ExplainRequest
 * @typedef {import("./service.js").RecourseResponse} RecourseResponse
 */

/** Milliseconds of rest before an action is asked for. */
const REST = 150;

export class ActionView {
  constructor() {
    /** @type {ModelInfo | null} */
    this.about = null;
    this.controller = new AbortController();
    /** @type {number | undefined} */
    this.resting = undefined;
  }

  /** The model that is asked. @param {ModelInfo} about */
  open(about) {
    this.about = about;
    const follow = Object.entries(about.causes);
    const words = follow.map(([name, causes]) => t("action_cause", { label: this.label(name), causes: causes.map((cause) => this.label(cause)).join(", ") }));
    setText(byId("action-causes"), t("action_words", { what: words.join("; ") }));
    show(byId("action"), follow.length > 0);
    this.draw(null);
  }

  /** What is shown is about an earlier question. */
  changed() {
    clearTimeout(this.resting);
    this.controller.abort();
    set(byId("action"), { "data-settled": null });
    byId("action").classList.add("stale");
  }

  /** @param {ExplainRequest | null} request */
  ask(request) {
    if (!request || !this.about || Object.keys(this.about.causes).length === 0) return;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => void this.find(request), REST);
  }

  /** @param {ExplainRequest} request */
  async find(request) {
    const controller = new AbortController();
    this.controller = controller;
    try {
      const found = await service.recourse(request, controller.signal);
      if (controller === this.controller) this.draw(found);
    } catch (error) {
      if (service.isAbort(error) || controller !== this.controller) return;
      this.draw(null);
      setText(byId("action-sentence"), service.sentenceOf(error));
    }
    byId("action").classList.remove("stale");
    set(byId("action"), { "data-settled": "yes" });
  }

  /** @param {RecourseResponse | null} found */
  draw(found) {
    const actions = found?.recourse.actions ?? [];
    const follows = found?.recourse.answer.counterfactual ? found.recourse.answer.changes.filter((change) => change.follows) : [];
    setText(byId("action-sentence"), found ? found.sentence : t("searching"));
    show(byId("action-parts"), actions.length > 0);
    byId("action-do").replaceChildren(...actions.map((action) => (action.held ? this.hold(action) : this.line(action))));
    const nothing = el("li", { class: "soft" }, t("action_nothing"));
    byId("action-follows").replaceChildren(...(follows.length ? follows.map((change) => this.line(change)) : [nothing]));
  }

  /** @param {Change} change */
  line({ feature, from, to }) {
    return el("li", {}, el("span", { class: "action-name" }, this.label(feature)),
      el("span", {}, el("span", { class: "before" }, this.value(feature, from)), el("span", { class: "arrow", "aria-hidden": "true" }, "→"),
        el("span", { class: "unseen" }, ` ${t("changed_to")} `), el("strong", { class: "after" }, this.value(feature, to))));
  }

  /** @param {Change} change */
  hold({ feature, to }) {
    return el("li", {}, el("span", { class: "action-name" }, this.label(feature)), el("span", {}, t("action_hold", { value: this.value(feature, to) })));
  }

  /** @param {string} name */
  feature(name) {
    return this.about?.schema.features.find((one) => one.name === name);
  }

  /** @param {string} name */
  label(name) {
    const feature = this.feature(name);
    return feature ? label(feature) : name;
  }

  /** @param {string} name @param {import("./service.js").Value} value */
  value(name, value) {
    const feature = this.feature(name);
    return feature ? shown(feature, value) : String(value);
  }
}
