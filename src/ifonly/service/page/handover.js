// Taking it along: on paper, as a page, as a link that knows the question and nothing of the person.

import { el, part, say, set, show } from "./dom.js";
import { label, shown } from "./format.js";
import * as service from "./service.js";
import { t } from "./words.js";

/**
 * @typedef {import("./service.js").About} About
 * @typedef {import("./service.js").Asked} Asked
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

/** @param {{ ask: () => Asked | null, link: () => string, person: () => { about: About, row: Row } | null }} of */
export function takeAlong({ ask, link, person }) {
  const told = part("hand-told");
  part("print").addEventListener("click", () => window.print());
  window.addEventListener("beforeprint", () => {
    const one = person();
    if (one) part("printed").replaceChildren(...printed(one.about, one.row));
  });
  part("save-html").addEventListener("click", async () => {
    const asked = ask();
    if (!asked) return;
    try {
      const page = await service.report(asked);
      save(page.blob, "answer.html");
    } catch (error) {
      say(told, service.sentenceOf(error));
    }
  });
  part("copy-link").addEventListener("click", async () => {
    const address = new URL(link(), location.href).href;
    const place = /** @type {HTMLInputElement} */ (part("link"));
    try {
      await navigator.clipboard.writeText(address);
      say(told, t("copied"));
      show(place, false);
    } catch {
      say(told, t("copy_failed"));
      set(place, { "aria-label": t("copy_link") });
      place.value = address;
      show(place, true);
      place.select();
    }
  });
}

/** What the decision was made on, for paper. @param {About} about @param {Row} row */
function printed(about, row) {
  const rows = about.schema.features.map((feature) => el("div", {}, el("dt", {}, label(feature)), el("dd", {}, shown(feature, row[feature.name] ?? null))));
  return [el("h2", {}, t("printed")), el("dl", {}, ...rows)];
}
