// Checks certificates in the browser, beside the page so that it stays usable. Nothing is sent anywhere.

import { check, inWords } from "./ifonly-check.mjs";

/** Seconds that a check may take. */
const MOST = 600;

self.addEventListener("message", async (/** @type {MessageEvent<ArrayBuffer>} */ event) => {
  const result = await check(new Uint8Array(event.data), { seconds: MOST });
  /** @type {any} */ (self).postMessage({ verdict: result.verdict, words: inWords(result).split("\n").slice(1, -1).join("\n") });
});
