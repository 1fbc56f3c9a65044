// The answer: the decision now, the sentence, what would be different, the alternatives, or what would help.

import { el, byId, setText, segments, set, show } from "./dom.js";
import { label, labelled, milliseconds, number, rounded, share, shown, titled } from "./format.js";
import { ChangeBar, drawPath } from "./marks.js";
import { comparisonTable } from "./compare.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").Answer} Answer
 * @typedef {import("./service.js").ExplainedAnswer} ExplainedAnswer
 * @typedef {import("./service.js").Suggestion} Suggestion
 * @typedef {import("./service.js").ExplainResponse} ExplainResponse
 * @typedef {import("./service.js").DiverseResponse} DiverseResponse
 * @typedef {import("./service.js").PredictResponse} PredictResponse
 * @typedef {import("./service.js").Query} Query
 * @typedef {import("./service.js").Value} Value
 * @typedef {{ answers: ExplainedAnswer[], blame: string[], help: Suggestion[], ending: string, seconds: number }} Shown
 */

export class AnswerView {
  /**
   * @param {ModelInfo} about
   * @param {{ allow: (query: Query) => void, chosen: (answer: ExplainedAnswer | null) => void }} act
   */
  constructor(about, act) {
    this.about = about;
    this.act = act;
    this.features = new Map(about.schema.features.map((feature) => [feature.name, feature]));
    /** @type {Map<string, { element: HTMLElement, bar: ChangeBar, before: HTMLElement, after: HTMLElement, note: HTMLElement }>} */
    this.rows = new Map();
    /** @type {Shown | null} */
    this.result = null;
    /** @type {PredictResponse | null} */
    this.prediction = null;
    this.way = 0;
    byId("changes").replaceChildren();
  }

  /** @param {ExplainResponse | DiverseResponse} response */
  show(response) {
    const many = "answers" in response;
    this.result = { answers: many ? response.answers : [response], blame: response.blame, help: response.help, ending: many ? response.ending : "", seconds: response.seconds };
    if (this.way >= this.result.answers.length) this.way = 0;
    this.drawWays();
    this.draw();
  }

  /** The way that is shown; null where a set of several is empty. */
  get chosen() {
    return this.result?.answers[this.way] ?? null;
  }

  draw() {
    const { result, chosen } = this;
    if (!result) return;
    const answer = chosen?.answer ?? null;
    const none = result.answers.length === 0 || answer?.status === "none exists";
    showSentence(none ? this.noneWords(answer) : chosen?.sentence ?? "", !none && (answer?.changes.length ?? 0) > 0);
    set(byId("answer"), { "data-status": none ? "none" : answer?.status ?? "" });
    show(byId("none"), none);
    if (none) this.drawNone(answer, result);
    const changes = answer?.counterfactual ? answer.changes : [];
    show(byId("changes-part"), changes.length > 0);
    this.drawChanges(changes);
    const many = result.answers.length > 1;
    show(byId("compare-part"), many);
    if (many) byId("compare").replaceChildren(comparisonTable(this.about, result.answers, this.way));
    setText(byId("ending"), labelled(this.about.schema.features, result.ending));
    this.drawPath(chosen);
    this.drawPrediction();
    this.act.chosen(chosen);
  }

  /** @param {Answer | null} answer */
  noneWords(answer) {
    const subject = ["", "the decision"].includes(this.about.subject) ? t("the_decision") : this.about.subject;
    return t("none", { subject, state: titled(this.about, answer?.state || answer?.target) });
  }

  /** @param {Answer | null} answer @param {Shown} result */
  drawNone(answer, result) {
    const inTheWay = result.blame.length ? result.blame.map((words) => el("li", {}, words)) : [el("li", {}, t("blame_model"))];
    byId("blame").replaceChildren(...inTheWay);
    const helps = result.help.map(({ words, said: stated, sentence, query }) => {
      const then = answer?.reasons?.relaxations.find((one) => one.words === words)?.changes.map((change) => this.changeWords(change));
      return el("li", {}, el("div", {}, el("b", {}, stated), ...(then ?? [el("p", { class: "soft" }, sentence)]), query ? null : el("p", { class: "soft" }, t("organisation"))),
        query ? el("button", { type: "button", class: "main", click: () => this.act.allow(query) }, t("allow"), el("span", { class: "unseen" }, `: ${stated}`)) : null);
    });
    byId("helps").replaceChildren(...(helps.length ? helps : [el("li", { class: "soft" }, t("helps_none"))]));
  }

  /** A change in a line. @param {import("./service.js").Change} change */
  changeWords({ feature, from, to }) {
    const own = this.features.get(feature);
    if (!own) return el("p", {});
    return el("p", { class: "soft" }, `${label(own)} `, el("span", { class: "before" }, shown(own, from)), el("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      el("span", { class: "unseen" }, ` ${t("changed_to")} `), el("strong", { class: "after" }, shown(own, to)));
  }

  /** @param {import("./service.js").Change[]} changes */
  drawChanges(changes) {
    const names = new Set(changes.map((change) => change.feature));
    for (const [name, row] of this.rows) if (!names.has(name)) row.element.remove();
    const list = byId("changes");
    changes.forEach((change, k) => {
      const feature = this.features.get(change.feature);
      if (!feature) return;
      const row = this.rowOf(change.feature);
      if (list.children[k] !== row.element) list.insertBefore(row.element, list.children[k] ?? null);
      setText(row.note, change.follows ? ` ${t("follows")}` : "");
      setText(row.before, shown(feature, change.from));
      setText(row.after, shown(feature, change.to));
      row.bar.draw(change);
    });
    list.classList.toggle("one", changes.length === 1);
    const rest = this.features.size - changes.length;
    setText(byId("stay"), rest > 1 ? t("stay_many", { count: number(rest) }) : rest === 1 ? t("stay_one") : "");
  }

  /** @param {string} name */
  rowOf(name) {
    const known = this.rows.get(name);
    if (known) return known;
    const feature = this.features.get(name);
    if (!feature) throw new Error(`no feature ${name}`);
    const [before, after, bar] = [el("span", { class: "before" }), el("strong", { class: "after" }), new ChangeBar(feature)];
    const note = el("span", { class: "soft" });
    const element = el("li", { class: "change" }, el("span", { class: "change-name" }, label(feature), note),
      el("span", { class: "change-values" }, before, el("span", { class: "arrow", "aria-hidden": "true" }, "→"), el("span", { class: "unseen" }, ` ${t("changed_to")} `), after),
      el("div", { class: "change-bar" }, bar.element, bar.ends));
    const row = { element, bar, before, after, note };
    this.rows.set(name, row);
    return row;
  }

  /** @param {ExplainedAnswer | null} chosen */
  drawPath(chosen) {
    const path = chosen?.path ?? null;
    const drawn = path !== null && path.score_margin.length > 1;
    show(byId("path-part"), drawn);
    if (!drawn) return;
    drawPath(byId("path"), { ...path, decision: titled(this.about, path.decision) });
    setText(byId("path-words"), t("path_words", { decision: titled(this.about, path.decision) }));
  }

  drawWays() {
    const place = byId("way-part");
    const count = this.result?.answers.length ?? 0;
    show(place, count > 1);
    if (place.querySelectorAll("input").length === count && count > 1) {
      const input = place.querySelectorAll("input")[this.way];
      if (input) input.checked = true;
      return;
    }
    const ways = Array.from({ length: count }, (_, k) => ({ value: k, text: t("way", { number: k + 1 }) }));
    place.replaceChildren(...(count > 1 ? [segments({ name: "way", label: t("ways"), options: ways, value: this.way, changed: (k) => {
      this.way = k;
      this.draw();
    } })] : []));
  }

  // ---------------------------------------------------------------- the decision now

  /** @param {PredictResponse} prediction */
  predicted(prediction) {
    this.prediction = prediction;
    this.drawPrediction();
  }

  drawPrediction() {
    const { prediction, about } = this;
    if (!prediction) return;
    const answer = this.chosen?.answer;
    const wanted = about.classes.length === 2 ? about.classes.find((one) => String(one) !== String(prediction.decision)) ?? "" : answer?.decision_after ?? "";
    const chance = prediction.probabilities && about.classes.length === 2 ? prediction.probabilities[String(wanted)] ?? null : null;
    setText(byId("decision"), titled(about, prediction.decision) || "–");
    setText(byId("gauge-left"), titled(about, prediction.decision));
    setText(byId("gauge-right"), titled(about, wanted));
    const behind = prediction.score_margin ?? 0;
    const words = prediction.score_margin === null ? [] : [t("from_boundary", { lead: rounded(behind) })];
    if (chance !== null) words.unshift(t("probability", { share: share(chance), name: titled(about, wanted) }));
    if (answer?.distance) words.push(t("nearest_change", { distance: rounded(answer.distance, 4) }));
    setText(byId("lead"), words.join(" · "));
    gauge(byId("gauge-from"), chance ?? 0.5 - behind / (2 + 2 * behind));
    const lead = this.chosen?.path?.score_margin.at(-1);
    show(byId("gauge-to"), lead !== undefined);
    if (lead !== undefined) gauge(byId("gauge-to"), chance !== null ? 1 / (1 + Math.exp(-lead)) : 0.5 + lead / (2 + 2 * lead));
  }

  /** How long it took, where nobody needs to look. @param {number} own seconds @param {number} seen milliseconds */
  took(own, seen) {
    setText(byId("took"), t("took", { own: milliseconds(own), seen: milliseconds(seen / 1000) }));
    set(byId("took"), { "data-at": performance.now() });
  }

  /** What a reader says of it. */
  get words() {
    const first = this.result?.help[0];
    return byId("sentence").textContent + (first && byId("none").hidden === false ? ` ${t("helps")}: ${first.said}` : "");
  }
}

/** The sentence; what it says after its first full stop at the end is a little quieter. @param {string} text @param {boolean} two */
function showSentence(text, two) {
  const at = two ? text.lastIndexOf(". ") + 1 : 0;
  const [first, second] = byId("sentence").children;
  if (first && second) {
    setText(first, at ? text.slice(0, at) : text);
    setText(second, at ? text.slice(at) : "");
  } else byId("sentence").replaceChildren(el("span", {}, at ? text.slice(0, at) : text), el("span", { class: "quiet" }, at ? text.slice(at) : ""));
}

/** @param {HTMLElement} dot @param {number} at 0 to 1, the boundary in the middle */
function gauge(dot, at) {
  dot.style.setProperty("--at", String(Math.min(0.98, Math.max(0.02, at))));
}
