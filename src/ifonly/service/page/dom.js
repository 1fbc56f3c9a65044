// Elements of the page. Whatever comes from a schema, a row or an answer becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {string | number | Node | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | EventListener>} Attributes
 */

/**
 * Attributes of an element: a function is a listener, true an empty attribute, false or null none.
 * @param {Element} node
 * @param {Attributes} attributes
 */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else {
      const text = value === true ? "" : String(value);
      if (node.getAttribute(name) !== text) node.setAttribute(name, text);
    }
  }
}

/**
 * @param {Node} node
 * @param {Child[]} children
 */
function fill(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    node.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  set(node, attributes);
  fill(node, children);
  return node;
}

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  set(node, attributes);
  fill(node, children);
  return node;
}

/**
 * The element of the page with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element '${id}'`);
  return found;
}

/**
 * The text of an element, touched only where it differs: a reader's place in it is not lost.
 * @param {Element} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * @param {Element} node
 * @param {boolean} visible
 */
export function show(node, visible) {
  if (node.hasAttribute("hidden") === visible) node.toggleAttribute("hidden", !visible);
}

const ICONS = {
  lock: "M5 7.2V5.3a3 3 0 0 1 6 0v1.9M3.6 7.2h8.8v6.2H3.6z",
  up: "M8 13V3.4M3.9 7.4 8 3.3l4.1 4.1",
  down: "M8 3v9.6M3.9 8.6 8 12.7l4.1-4.1",
  limit: "M2.8 3.4v9.2M13.2 3.4v9.2M5 8h6M6.8 6.2 5 8l1.8 1.8M9.2 6.2 11 8l-1.8 1.8",
  remove: "M4.2 4.2l7.6 7.6M11.8 4.2l-7.6 7.6",
  print: "M4.4 6V2.6h7.2V6M4.4 11.6H2.6V6h10.8v5.6h-1.8M4.4 9.6h7.2v3.8H4.4z",
  save: "M8 2.6v7.6M4.8 7.2 8 10.4l3.2-3.2M2.8 13.2h10.4",
  link: "M6.6 9.4 9.4 6.6M7.4 4.8l1.5-1.5a2.7 2.7 0 0 1 3.8 3.8l-1.5 1.5M8.6 11.2l-1.5 1.5a2.7 2.7 0 0 1-3.8-3.8l1.5-1.5",
  seal: "M8 1.8l5.2 2v4c0 3.2-2.2 5.4-5.2 6.6C5 13.200 2.800 11 2.800 7.800v-4zM5.600 8l1.800 1.800L10.600 6.400",
  sun: "M8 5.200a2.800 2.800 0 1 1 0 5.600 2.800 2.800 0 0 1 0-5.600zM8 1.600v1.400M8 13v1.400M1.600 8H3M13 8h1.400M3.500 3.500l1 1M11.500 11.500l1 1M12.500 3.500l-1 1M4.500 11.500l-1 1",
};

/**
 * A small picture beside words; it says nothing by itself.
 * @param {keyof typeof ICONS} name
 * @returns {SVGElement}
 */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** The three bars of what a change costs, filled up to its level. @param {number} level 0 easy, 1 normal, 2 hard */
export function costIcon(level) {
  const bars = [0, 1, 2].map((k) =>
    svg("rect", { x: 2.6 + 4 * k, y: 9.4 - 3 * k, width: 2.8, height: 4 + 3 * k, rx: 0.6, class: k <= level ? "full" : "empty" }));
  return svg("svg", { class: "icon cost", viewBox: "0 0 16 16", "aria-hidden": "true" }, ...bars);
}

/**
 * One of several, by buttons side by side: radio buttons underneath, so that arrow keys and readers know them.
 * @template T
 * @param {{ name: string, label: string, options: { value: T, text: string, title?: string }[], value: T, changed: (value: T) => void }} given
 * @returns {HTMLFieldSetElement}
 */
export function segments({ name, label, options, value, changed }) {
  const parts = options.map((option, k) => {
    const input = el("input", { type: "radio", name, value: String(k), change: () => changed(option.value) });
    input.checked = option.value === value;
    return el("label", { title: option.title ?? null }, input, el("span", {}, option.text));
  });
  return el("fieldset", { class: "segments" }, el("legend", { class: "unseen" }, label), ...parts);
}

let numbers = 0;
/** A new id. @param {string} stem */
export function newId(stem) {
  numbers += 1;
  return `${stem}-${numbers}`;
}
