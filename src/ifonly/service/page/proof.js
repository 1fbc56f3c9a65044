// What stands behind the answer: the guarantee in plain words, and the certificate, to keep and to check in place.

import { byId, setText, set, show } from "./dom.js";
import { size } from "./format.js";
import { save } from "./handover.js";
import * as service from "./service.js";
import { t } from "./words.js";

/** @typedef {import("./service.js").ExplainedAnswer} ExplainedAnswer @typedef {import("./service.js").ExplainRequest} ExplainRequest @typedef {import("./service.js").ModelInfo} ModelInfo */

const MAX_BYTES = 64e6;

/** The verdict of the checker that runs in the browser. @param {Blob} certificate @returns {Promise<{ verdict: string, words: string }>} */
async function checked(certificate) {
  const content = await certificate.arrayBuffer();
  const worker = new Worker(new URL("check-worker.js", import.meta.url), { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.addEventListener("message", (event) => resolve(event.data));
      worker.addEventListener("error", () => reject(new Error(t("certificate_unchecked"))));
      worker.postMessage(content, [content]);
    });
  } finally {
    worker.terminate();
  }
}

export class Proof {
  /** @param {() => ExplainRequest | null} ask the question of the nearest answer */
  constructor(ask) {
    this.ask = ask;
    /** @type {service.File | null} */
    this.file = null;
    /** @type {ModelInfo | null} */
    this.about = null;
    /** Counts what is begun, so that what comes back late is known to be late. */
    this.turn = 0;
    byId("certify").addEventListener("click", () => void this.make());
    byId("certificate-save").addEventListener("click", () => this.file && save(this.file.blob, this.file.name));
    byId("certificate-check").addEventListener("click", () => this.file && void this.check(this.file.blob));
    this.listenForFiles();
  }

  /** @param {ModelInfo} about */
  open(about) {
    this.about = about;
    this.forget("");
  }

  /** @param {ExplainedAnswer | null} chosen @param {number} ways */
  show(chosen, ways) {
    setText(byId("guarantee"), chosen?.guarantee || (chosen?.answer.already ? t("already") : ""));
    setText(byId("exact"), chosen?.exact ?? "");
    show(byId("exact-part"), Boolean(chosen?.exact));
    const able = this.about?.certificates ?? false;
    setText(byId("certificate-note"), !able ? t("certificate_none") : ways > 1 ? t("certificate_first") : "");
    show(byId("certificate-actions"), able);
  }

  /** The question has changed: a certificate is about another one. @param {string} words */
  forget(words) {
    this.turn += 1;
    if (this.file) this.showMessage(words);
    else if (!words) this.showMessage("");
    this.file = null;
    show(byId("certificate-save"), false);
    show(byId("certificate-check"), false);
    show(byId("verdict"), false);
  }

  /** @param {string} words @param {boolean} [wrong] */
  showMessage(words, wrong = false) {
    setText(byId("certificate-told"), words);
    byId("certificate-told").className = wrong ? "wrong" : "soft";
  }

  async make() {
    const request = this.ask();
    if (!request) return;
    this.forget("");
    const { turn } = this;
    this.showMessage(t("certificate_making"));
    try {
      const file = await service.certify(request);
      if (turn !== this.turn) return this.showMessage(t("certificate_old"));
      this.file = file;
      this.showMessage(t("certificate_made", { size: size(this.file.blob.size) }));
      show(byId("certificate-save"), true);
      show(byId("certificate-check"), true);
      byId("certificate-check").focus();
    } catch (error) {
      this.showMessage(turn === this.turn ? service.sentenceOf(error) : "", turn === this.turn);
    }
  }

  /** @param {Blob} certificate */
  async check(certificate) {
    show(byId("verdict"), false);
    if (certificate.size > MAX_BYTES) return this.showMessage(size(certificate.size), true);
    this.showMessage(t("certificate_checking"));
    const { turn } = this;
    try {
      const result = await checked(certificate);
      if (turn !== this.turn) return this.showMessage("");
      const known = ["VALID", "INVALID"].includes(result.verdict);
      this.showMessage("");
      set(byId("verdict"), { "data-verdict": result.verdict });
      setText(byId("verdict-word"), known ? t(`verdict_${result.verdict}`) : t("verdict_other", { verdict: result.verdict }));
      setText(byId("verdict-statement"), result.words);
      show(byId("verdict"), true);
    } catch (error) {
      this.showMessage(service.sentenceOf(error), true);
    }
  }

  listenForFiles() {
    const drop = byId("drop");
    const input = /** @type {HTMLInputElement} */ (byId("drop-file"));
    input.addEventListener("change", () => {
      const file = input.files?.[0];
      if (file) void this.check(file);
      input.value = "";
    });
    const over = (/** @type {boolean} */ on) => (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      drop.classList.toggle("over", on);
    };
    drop.addEventListener("dragover", over(true));
    drop.addEventListener("dragleave", over(false));
    drop.addEventListener("drop", (event) => {
      over(false)(event);
      const file = event.dataTransfer?.files[0];
      if (file) void this.check(file);
    });
  }
}
