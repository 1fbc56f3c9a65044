// Taking it along: on paper, as a page, as a link that knows the question and nothing of the person.

import { el, byId, setText, set, show } from "./dom.js";
import { label, shown, titled } from "./format.js";
import * as service from "./service.js";
import { currentLanguage, t } from "./words.js";

/**
 * @typedef {import("./service.js").ModelInfo} ModelInfo
 * @typedef {import("./service.js").ExplainRequest} ExplainRequest
 * @typedef {import("./service.js").Row} Row
 */

/** Save what was made here as a file. @param {Blob} content @param {string} name */
export function save(content, name) {
  const address = URL.createObjectURL(content);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** @param {{ ask: (ways?: number) => ExplainRequest | null, link: () => string, person: () => { about: ModelInfo, row: Row } | null }} of */
export function connectHandover({ ask, link, person }) {
  const message = byId("hand-told");
  byId("print").addEventListener("click", () => window.print());
  window.addEventListener("beforeprint", () => {
    const one = person();
    if (one) byId("printed").replaceChildren(...printed(one.about, one.row));
  });
  /** @param {ExplainRequest | null} request @param {(request: ExplainRequest) => Promise<import("./service.js").File>} get @param {string} name */
  const saved = async (request, get, name) => {
    if (!request) return;
    try {
      save((await get(request)).blob, name);
    } catch (error) {
      setText(message, service.sentenceOf(error));
    }
  };
  byId("save-html").addEventListener("click", () => saved(ask(), service.report, "answer.html"));
  const form = /** @type {HTMLSelectElement} */ (byId("notice-form"));
  byId("save-notice").addEventListener("click", () => saved(ask(1), (request) => service.notice({ ...request, form: form.value }), "notice.html"));
  byId("copy-link").addEventListener("click", async () => {
    const address = new URL(link(), location.href).href;
    const place = /** @type {HTMLInputElement} */ (byId("link"));
    try {
      await navigator.clipboard.writeText(address);
      setText(message, t("copied"));
      show(place, false);
    } catch {
      setText(message, t("copy_failed"));
      set(place, { "aria-label": t("copy_link") });
      place.value = address;
      show(place, true);
      place.select();
    }
  });
}

/** What the decision was made on, for paper. @param {ModelInfo} about @param {Row} row */
function printed(about, row) {
  const rows = about.schema.features.map((feature) => el("div", {}, el("dt", {}, label(feature)), el("dd", {}, shown(feature, row[feature.name] ?? null))));
  const date = new Intl.DateTimeFormat(currentLanguage(), { dateStyle: "long", timeStyle: "short" }).format(new Date());
  return [el("h2", {}, t("printed")), el("dl", {}, ...rows), el("p", { class: "soft" }, t("printed_on", { title: titled(about, about.title), date }))];
}
