// What stands behind the answer: the guarantee in plain words, and the certificate, to keep and to check in place.

import { part, say, set, show } from "./dom.js";
import { size } from "./format.js";
import { save } from "./handover.js";
import * as service from "./service.js";
import { t } from "./words.js";

/** @typedef {import("./service.js").Told} Told @typedef {import("./service.js").Asked} Asked @typedef {import("./service.js").About} About */

const MOST_BYTES = 64e6;

export class Proof {
  /** @param {() => Asked | null} ask the question of the nearest answer */
  constructor(ask) {
    this.ask = ask;
    /** @type {service.File | null} */
    this.file = null;
    /** @type {About | null} */
    this.about = null;
    /** Counts what is begun, so that what comes back late is known to be late. */
    this.turn = 0;
    part("certify").addEventListener("click", () => void this.make());
    part("certificate-save").addEventListener("click", () => this.file && save(this.file.blob, this.file.name));
    part("certificate-check").addEventListener("click", () => this.file && void this.check(this.file.blob));
    this.listenForFiles();
  }

  /** @param {About} about */
  open(about) {
    this.about = about;
    this.forget("");
  }

  /** @param {Told | null} told @param {number} ways */
  show(told, ways) {
    say(part("guarantee"), told?.guarantee || (told?.answer.already ? t("already") : ""));
    say(part("exact"), told?.exact ?? "");
    show(part("exact-part"), Boolean(told?.exact));
    const able = this.about?.certificates ?? false;
    say(part("certificate-note"), !able ? t("certificate_none") : ways > 1 ? t("certificate_first") : "");
    show(part("certificate-actions"), able);
  }

  /** The question has changed: a certificate is about another one. @param {string} words */
  forget(words) {
    this.turn += 1;
    if (this.file) this.tell(words);
    else if (!words) this.tell("");
    this.file = null;
    show(part("certificate-save"), false);
    show(part("certificate-check"), false);
    show(part("verdict"), false);
  }

  /** @param {string} words @param {boolean} [wrong] */
  tell(words, wrong = false) {
    say(part("certificate-told"), words);
    part("certificate-told").className = wrong ? "wrong" : "soft";
  }

  async make() {
    const asked = this.ask();
    if (!asked) return;
    this.forget("");
    const { turn } = this;
    this.tell(t("certificate_making"));
    try {
      const file = await service.certify(asked);
      if (turn !== this.turn) return this.tell(t("certificate_old"));
      this.file = file;
      this.tell(t("certificate_made", { size: size(this.file.blob.size) }));
      show(part("certificate-save"), true);
      show(part("certificate-check"), true);
      part("certificate-check").focus();
    } catch (error) {
      this.tell(turn === this.turn ? service.sentenceOf(error) : "", turn === this.turn);
    }
  }

  /** @param {Blob} certificate */
  async check(certificate) {
    show(part("verdict"), false);
    if (certificate.size > MOST_BYTES) return this.tell(size(certificate.size), true);
    this.tell(t("certificate_checking"));
    const { turn } = this;
    try {
      const told = await service.check(certificate);
      if (turn !== this.turn) return this.tell("");
      const known = ["VALID", "INVALID"].includes(told.verdict);
      this.tell("");
      set(part("verdict"), { "data-verdict": told.verdict });
      say(part("verdict-word"), known ? t(`verdict_${told.verdict}`) : t("verdict_other", { verdict: told.verdict }));
      say(part("verdict-statement"), [told.statement, told.failure].filter(Boolean).join("\n"));
      show(part("verdict"), true);
    } catch (error) {
      this.tell(service.sentenceOf(error), true);
    }
  }

  listenForFiles() {
    const drop = part("drop");
    const input = /** @type {HTMLInputElement} */ (part("drop-file"));
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
