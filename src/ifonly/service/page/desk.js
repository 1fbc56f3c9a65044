// The desk: brings the parts together. A person and a question are kept here, in memory, and nowhere else.

import { ActionView } from "./action.js";
import { AnswerView } from "./answer.js";
import { RequestLoop } from "./requests.js";
import { Conditions } from "./conditions.js";
import { costIcon, el, icon, byId, setText, segments, set, show } from "./dom.js";
import { FeatureRow } from "./feature.js";
import { titled } from "./format.js";
import { connectHandover } from "./handover.js";
import { Proof } from "./proof.js";
import { DIFFER, MAX_WAYS, fromLink, fromQuery, openQuestion, toLink, toQuery } from "./question.js";
import * as service from "./service.js";
import { fillSelect, grouped, defaultRow, nearOptions, select } from "./settings.js";
import { drawBounds, drawStale, strip } from "./status.js";
import { WORDS, setLanguage, currentLanguage, t } from "./words.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").ExplainRequest} ExplainRequest
 * @typedef {import("./service.js").Row} Row
 * @typedef {import("./service.js").Query} Query
 * @typedef {import("./question.js").Question} Question
 * @typedef {import("./question.js").Origin} Origin
 */

/** Milliseconds of rest before the answer is read aloud: not while somebody drags. */
const REST = 700;
const LONGEST_WAIT = 30;
/** Milliseconds of rest before the question is written into the address. */
const LINK_REST = 200;

class Desk {
  constructor() {
    /** @type {import("./service.js").Models | null} */
    this.models = null;
    /** @type {ModelInfo | null} */
    this.about = null;
    /** @type {Row} */
    this.row = {};
    /** @type {Question | null} */
    this.question = null;
    /** @type {Origin[]} */
    this.origins = [];
    /** @type {Map<string, FeatureRow>} */
    this.rows = new Map();
    /** @type {AnswerView | null} */
    this.view = null;
    /** @type {Conditions | null} */
    this.conditions = null;
    this.failures = 0;
    /** @type {number | undefined} */
    this.resting = undefined;
    /** @type {number | undefined} */
    this.retrying = undefined;
    /** @type {number | undefined} */
    this.writing = undefined;
    /** Counts the models that were asked for: only the last is opened. */
    this.opening = 0;
    this.proof = new Proof(() => this.request(1));
    this.action = new ActionView();
    this.requests = new RequestLoop({
      ask: () => this.request(this.question?.ways ?? 1, true),
      predicted: (response) => this.view?.predicted(response),
      answered: (response, request, since) => request.model === this.about?.model && this.answered(response, since),
      bounds: (bounds) => drawBounds(bounds),
      failed: (error) => this.failed(error),
    });
    /** @type {() => void} what is tried again */
    this.again = () => void this.start();
    setText(byId("sentence"), t("loading"));
    this.wire();
  }

  wire() {
    select("model").addEventListener("change", () => void this.open(select("model").value));
    select("language").addEventListener("change", () => this.changeLanguage(select("language").value));
    select("look").addEventListener("change", () => set(document.documentElement, { "data-look": select("look").value }));
    select("target").addEventListener("change", () => this.ask((question) => {
      question.target = this.about?.classes[select("target").selectedIndex - 1] ?? null;
    }));
    select("near").addEventListener("change", () => this.ask((question) => {
      const near = select("near").value;
      if (near === "own") return;
      question.fewest = near === "fewest";
      question.distance = near === "linf" ? "linf" : "l1";
    }));
    byId("rule").addEventListener("input", () => this.conditions?.typed());
    byId("rule-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.conditions?.add();
    });
    byId("retry").addEventListener("click", () => this.again());
    byId("key-form").addEventListener("submit", () => {
      const field = /** @type {HTMLInputElement} */ (byId("key"));
      service.useKey(field.value);
      field.value = "";
      this.again();
    });
    new IntersectionObserver(([seen]) => show(byId("strip"), !seen?.isIntersecting)).observe(byId("changes-seen"));
    window.addEventListener("hashchange", () => void this.followLink());
    connectHandover({ ask: (ways) => this.request(ways ?? this.question?.ways ?? 1), link: () => this.link(),
      person: () => (this.about ? { about: this.about, row: this.row } : null) });
  }

  // ---------------------------------------------------------------- opening

  async start() {
    try {
      this.models = await service.models();
      this.clearErrors();
      const link = this.readLink();
      const first = this.models.models[0]?.name ?? "";
      const known = this.models.models.some(({ name }) => name === link?.model);
      if (link?.language) setLanguage(link.language);
      await this.open(known && link?.model ? link.model : first, link);
    } catch (error) {
      this.again = () => void this.start();
      this.failed(error);
    }
  }

  /** @param {string} model @param {ReturnType<typeof fromLink>} [link] */
  async open(model, link = null) {
    this.opening += 1;
    const turn = this.opening;
    try {
      const about = await service.about(model);
      if (turn !== this.opening) return;
      this.about = about;
      this.row = { ...(about.people[0]?.row ?? defaultRow(about)) };
      this.question = openQuestion(about);
      if (link) this.take(link);
      this.proof.open(about);
      this.build();
      this.ask(() => {});
    } catch (error) {
      this.again = () => void this.open(model, link);
      this.failed(error);
    }
  }

  /** Everything that depends on the model, the language or a new question. */
  build() {
    const { about, question, models } = this;
    if (!about || !question || !models) return;
    document.documentElement.lang = currentLanguage();
    for (const node of document.querySelectorAll("[data-word]")) setText(node, t(node.getAttribute("data-word") ?? ""));
    document.title = `${t("title")} · ${titled(about, about.title)}`;
    fillSelect("model", models.models.map(({ name, title }) => [name, title]), about.model);
    show(byId("model-part"), models.models.length > 1);
    fillSelect("language", models.languages.filter((tag) => Object.hasOwn(WORDS, tag)).map((tag) => [tag, WORDS[tag]?.["language"] ?? tag]), currentLanguage());
    setText(byId("version"), `ifonly ${models.version}`);
    if (!this.view) setText(byId("sentence"), t("searching"));
    this.view = new AnswerView(about, { allow: (query) => this.allow(query), chosen: (answer) => this.chosen(answer) });
    this.action.open(about);
    this.conditions = new Conditions(about, question, () => this.conditionsChanged());
    this.buildPeople(about);
    this.buildFeatures(about, question);
    this.buildAsked(about, question);
    /** @type {[Node, string][]} */
    const marks = [[icon("lock"), "lock"], [icon("up"), "up"], [icon("down"), "down"], [icon("limit"), "limit"], [costIcon(1), "cost"]];
    byId("legend").replaceChildren(...marks.map(([mark, name]) => el("li", {}, mark, t(`legend_${name}`))));
    byId("desk").removeAttribute("aria-busy");
  }

  /** @param {ModelInfo} about */
  buildPeople(about) {
    const people = about.people.map(({ title }, k) => ({ value: k, text: titled(about, title) }));
    const taken = about.people.findIndex(({ row }) => JSON.stringify(row) === JSON.stringify(this.row));
    const choose = (/** @type {number} */ k) => {
      this.row = { ...(about.people[k]?.row ?? this.row) };
      if (this.question) this.buildFeatures(about, this.question);
      this.changed();
    };
    byId("examples").replaceChildren(...(people.length > 1 ? [segments({ name: "example", label: t("examples"), options: people, value: taken, changed: choose })] : []));
  }

  /** @param {ModelInfo} about @param {Question} question */
  buildFeatures(about, question) {
    this.rows.clear();
    drawStale(this.rows);
    const changed = {
      row: (/** @type {string} */ name, /** @type {import("./service.js").Value} */ value) => {
        this.row = { ...this.row, [name]: value };
        for (const input of byId("examples").querySelectorAll("input")) input.checked = false;
        this.changed();
      },
      settings: () => this.questionChanged(),
      validity: () => drawStale(this.rows),
    };
    const groups = grouped(about).map(({ title: named, features }) => {
      const title = titled(about, named);
      const list = el("ul", { class: "features", "aria-label": title || t("person") });
      for (const feature of features) {
        const settings = question.settings.get(feature.name);
        if (!settings) continue;
        const row = new FeatureRow(feature, this.row[feature.name] ?? null, settings, changed);
        this.rows.set(feature.name, row);
        list.append(row.element);
      }
      return el("div", { class: "group" }, title ? el("h3", {}, title) : null, list);
    });
    byId("features").replaceChildren(...groups);
  }

  /** @param {ModelInfo} about @param {Question} question */
  buildAsked(about, question) {
    const most = Math.min(MAX_WAYS, about.limits.answers);
    const ways = Array.from({ length: most }, (_, k) => ({ value: k + 1, text: String(k + 1) }));
    byId("ways").replaceChildren(segments({ name: "ways", label: t("ways"), options: ways, value: question.ways, changed: (count) => this.ask((own) => {
      own.ways = count;
    }) }));
    const differ = DIFFER.map((value) => ({ value, text: t(`differ_${value}`) }));
    byId("differ").replaceChildren(segments({ name: "differ", label: t("differ"), options: differ, value: question.differ, changed: (value) => this.ask((own) => {
      own.differ = value;
    }) }));
    const target = about.classes.findIndex((one) => one === question.target || one === question.target?.class);
    fillSelect("target", [["", t("wanted_other")], ...about.classes.map((one) => /** @type {[string, string]} */ ([String(one), titled(about, one)]))], "");
    select("target").selectedIndex = target + 1;
    const near = nearOptions(question);
    fillSelect("near", near.options, near.value);
  }

  // ---------------------------------------------------------------- changes

  /** @param {(question: Question) => void} change */
  ask(change) {
    if (!this.question) return;
    change(this.question);
    this.questionChanged();
  }

  /** A condition was taken away in the list, or a rule added: the features show it. */
  conditionsChanged() {
    for (const row of this.rows.values()) row.refresh();
    this.questionChanged();
  }

  questionChanged() {
    this.conditions?.draw();
    show(byId("differ-part"), (this.question?.ways ?? 1) > 1);
    this.writeLink();
    this.changed();
  }

  changed() {
    set(byId("desk"), { "data-settled": null });
    this.proof.forget(t("certificate_old"));
    this.action.changed();
    this.requests.changed();
  }

  /** @param {Query} query */
  allow(query) {
    if (!this.about || !this.question) return;
    this.question = fromQuery(query, this.about, this.question);
    this.build();
    this.questionChanged();
    byId("answer-title").focus();
  }

  /** @param {string} tag */
  changeLanguage(tag) {
    if (!setLanguage(tag)) return;
    this.build();
    this.questionChanged();
  }

  /** The request to the service. @param {number} ways @param {boolean} [path] @returns {ExplainRequest | null} */
  request(ways, path) {
    if (!this.about || !this.question) return null;
    const { query, origins } = toQuery(this.question);
    this.origins = origins;
    if (this.question.target === null && this.about.classes.length > 2) query.target = { other: true };
    /** @type {ExplainRequest} */
    const request = { model: this.about.model, row: this.row, query, language: currentLanguage() };
    if (path) request.path = true;
    if (ways > 1) request.diversity = { count: ways, differ: this.question.differ };
    return request;
  }

  // ---------------------------------------------------------------- answers

  /** @param {import("./service.js").ExplainResponse | import("./service.js").DiverseResponse} response @param {number} since */
  answered(response, since) {
    this.clearErrors();
    this.view?.show(response);
    this.action.ask(this.request(1));
    requestAnimationFrame(() => {
      this.view?.took(response.seconds, performance.now() - since);
      if (!this.requests.running) set(byId("desk"), { "data-settled": "yes" });
    });
    clearTimeout(this.resting);
    this.resting = setTimeout(() => setText(byId("live"), this.view?.words ?? ""), REST);
  }

  /** The way that is shown: the form has marks where it leads. @param {import("./service.js").ExplainedAnswer | null} chosen */
  chosen(chosen) {
    const to = new Map(chosen?.answer.counterfactual ? chosen.answer.changes.map((change) => [change.feature, change.to]) : []);
    for (const [name, row] of this.rows) row.answered(to.get(name));
    this.proof.show(chosen, this.question?.ways ?? 1);
    strip(this.about, chosen);
  }

  /** An error is said where it belongs. @param {unknown} error */
  failed(error) {
    drawBounds(null);
    if (error instanceof service.ServiceError && error.status === 401) return this.askForKey();
    if (error instanceof service.Unreachable) return this.waitAndRetry("offline", 0);
    if (error instanceof service.ServiceError && [429, 503].includes(error.status)) return this.waitAndRetry("busy", error.after);
    set(byId("desk"), { "data-settled": "yes" });
    const sentence = service.sentenceOf(error);
    if (!this.view?.result) setText(byId("sentence"), "");
    const where = error instanceof service.ServiceError ? error.where ?? "" : "";
    const constraint = /^query\.constraints\[(\d+)\]/.exec(where);
    const origin = constraint && this.origins[Number(constraint[1])];
    const row = where.startsWith("row.") ? this.rows.get(where.slice(4)) : undefined;
    if (origin) this.conditions?.draw(new Map([[JSON.stringify(origin), sentence]]));
    row?.wrong(sentence);
    const place = where === "row" ? "row-wrong" : "answer-wrong";
    setText(byId(place), sentence);
    show(byId(place), true);
    byId("answer").classList.add("stale");
  }

  /** The service answers again. */
  clearErrors() {
    this.failures = 0;
    clearTimeout(this.retrying);
    for (const id of ["notice", "answer-wrong", "row-wrong"]) show(byId(id), false);
    byId("answer").classList.remove("stale");
    const dialog = /** @type {HTMLDialogElement} */ (byId("key-dialog"));
    if (dialog.open) dialog.close();
    this.again = () => this.requests.changed();
  }

  askForKey() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("key-dialog"));
    show(byId("key-wrong"), this.failures > 0);
    this.failures += 1;
    for (const node of dialog.querySelectorAll("[data-word]")) setText(node, t(node.getAttribute("data-word") ?? ""));
    if (!dialog.open) dialog.showModal();
  }

  /** @param {"offline" | "busy"} words @param {number} after */
  waitAndRetry(words, after) {
    this.failures += 1;
    const seconds = Math.min(LONGEST_WAIT, after || 2 ** (this.failures - 1));
    setText(byId("notice-words"), t(words, { seconds }));
    setText(byId("retry"), t("retry"));
    show(byId("notice"), true);
    clearTimeout(this.retrying);
    this.retrying = setTimeout(() => this.again(), 1000 * seconds);
  }

  // ---------------------------------------------------------------- the link

  /** The address says what is asked; not at every step of a hand, which browsers do not allow. */
  writeLink() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => history.replaceState(null, "", this.link()), LINK_REST);
  }

  link() {
    return this.about && this.question ? toLink(this.about.model, currentLanguage(), this.question) : "";
  }

  /** @returns {ReturnType<typeof fromLink>} */
  readLink() {
    try {
      return fromLink(location.hash);
    } catch (error) {
      setText(byId("answer-wrong"), t("link_bad", { why: error instanceof Error ? error.message : "" }));
      show(byId("answer-wrong"), true);
      return null;
    }
  }

  /** @param {NonNullable<ReturnType<typeof fromLink>>} link */
  take(link) {
    if (!this.about || !this.question) return;
    const { ways, differ } = link;
    this.question = fromQuery(link.query, this.about, { ...this.question, ways, differ });
  }

  /** The address was changed by hand, or by going back. */
  async followLink() {
    const link = this.readLink();
    if (!link || location.hash === this.link()) return;
    if (link.language) setLanguage(link.language);
    if (link.model && link.model !== this.about?.model && this.models?.models.some(({ name }) => name === link.model)) return this.open(link.model, link);
    this.take(link);
    this.build();
    this.questionChanged();
  }
}

setLanguage(navigator.language);
void new Desk().start();
