// @ts-nocheck
// Second checker of certificates, independent of the first: written from docs/certificate.md, in exact whole numbers (BigInt),
// without dependencies. In a browser: `await check(bytes)`. On the command line: `node ifonly-check.mjs FILE [--json]`.

export const VALID = "VALID", TRUSTED = "VALID EXCEPT FOR THE SOLVER'S BOUND", UNDECIDED = "UNDECIDED", INVALID = "INVALID";
export const CODES = { [VALID]: 0, [INVALID]: 1, [TRUSTED]: 3, [UNDECIDED]: 4 };

const MIB = 2 ** 20;
const MAX_BYTES = 16 * MIB, MAX_TEXT = 64 * MIB, FREE_TEXT = MIB, TIMES = 10, MAX_CONTAINERS = 2_000_000, MAX_NESTING = 500;
const MAX_NODES = 500_000, MAX_DEPTH = 20_000, MAX_ROWS = 1_000, MAX_STEPS = 10_000, LARGEST = 2n ** 62n, MAX_WEIGHTS = 5_000_000, MAX_COLUMNS = 20_000;
const MAX_GRID = 2_400, MAX_NUMBER = 65_536, MAX_LITERALS = 20_000, MAX_ALTERNATIVES = 64, MAX_MODELS = 64, MAX_SIDES = 10, MAX_CONTRASTS = 10_000, MAX_SETS = 64, MAX_WHOLE = 10n ** 18n;
const FREE_BITS = 2 ** 29, BITS_PER_BYTE = 256, BITS_OF_OBJECT = 256;
const SLOPE = 44n, ONE = 1n << SLOPE, ROUNDS = 20, FINEST = 1074;

class Refusal extends Error {}
class Stopped extends Error {}

const refuse = (words) => { throw new Refusal(words); };

/** Time and memory that a check may take. */
class Budget {
  constructor(seconds) {
    this.until = performance.now() + 1000 * seconds;
    this.bits = Infinity;
    this.count = 0;
  }
  tick() {
    if ((++this.count & 15) === 0 && performance.now() > this.until) throw new Stopped();
  }
  look() {
    if (performance.now() > this.until) throw new Stopped();
  }
  keep(bits) {
    this.tick();
    this.bits -= bits;
    if (this.bits < 0) refuse("its numbers would take far more memory than their text; such a file is not checked");
  }
}

// ---------------------------------------------------------------------- whole numbers and fractions

const abs = (a) => (a < 0n ? -a : a);
const least = (a, b) => (a < b ? a : b);
const largest = (a, b) => (a > b ? a : b);
/** Division rounded down, by a positive number. */
const floor = (a, b) => (a >= 0n ? a / b : -((-a + b - 1n) / b));
const ceil = (a, b) => -floor(-a, b);
const modulo = (a, b) => a - floor(a, b) * b;

function bitLength(a) {
  if (a === 0n) return 0;
  const text = abs(a).toString(16);
  return 4 * (text.length - 1) + 32 - Math.clz32(parseInt(text[0], 16));
}

function squareRoot(a) {
  if (a < 2n) return a;
  let x = 1n << BigInt((bitLength(a) + 1) >> 1);
  for (;;) {
    const next = (x + a / x) >> 1n;
    if (next >= x) return x;
    x = next;
  }
}

/** Fractions are pairs [top, bottom], bottom > 0, not always in lowest terms. */
const F = {
  of: (a) => [BigInt(a), 1n],
  add: (a, b) => (a[1] === b[1] ? [a[0] + b[0], a[1]] : [a[0] * b[1] + b[0] * a[1], a[1] * b[1]]),
  sub: (a, b) => F.add(a, [-b[0], b[1]]),
  mul: (a, b) => [a[0] * b[0], a[1] * b[1]],
  div: (a, b) => (b[0] > 0n ? [a[0] * b[1], a[1] * b[0]] : [-a[0] * b[1], -a[1] * b[0]]),
  cmp: (a, b) => { const d = a[0] * b[1] - b[0] * a[1]; return d > 0n ? 1 : d < 0n ? -1 : 0; },
  abs: (a) => [abs(a[0]), a[1]],
  floor: (a) => floor(a[0], a[1]),
  ceil: (a) => ceil(a[0], a[1]),
  isWhole: (a) => a[0] % a[1] === 0n,
  lowest: (a) => { const d = divisor(abs(a[0]), a[1]); return [a[0] / d, a[1] / d]; },
  /** The nearest whole number; a half goes to the even one. */
  round: (a) => {
    const below = F.floor(a), rest = F.cmp(F.sub(a, F.of(below)), [1n, 2n]);
    return rest > 0 || (rest === 0 && modulo(below, 2n) === 1n) ? below + 1n : below;
  },
};

const buffer = new DataView(new ArrayBuffer(8));

/** A float64 as m 2^e with an odd m, or 0 with e = 0. */
function parts(x) {
  buffer.setFloat64(0, x);
  const bits = buffer.getBigUint64(0), exponent = Number((bits >> 52n) & 0x7ffn);
  let m = bits & 0xfffffffffffffn, e = -1074;
  if (exponent) { m |= 1n << 52n; e = exponent - 1075; }
  if (m === 0n) return [0n, 0];
  while ((m & 0xffn) === 0n) { m >>= 8n; e += 8; }
  while ((m & 1n) === 0n) { m >>= 1n; e += 1; }
  return [x < 0 ? -m : m, e];
}

function fraction(x) {
  const [m, e] = parts(x);
  return e >= 0 ? [m << BigInt(e), 1n] : [m, 1n << BigInt(-e)];
}

/** The bits behind the point that a float64 has. */
const fineness = (x) => Math.max(-parts(x)[1], 0);

/** A float64 in units of 2^-bits. */
function scaled(x, bits, what) {
  const [m, e] = parts(x);
  if (bits + e < 0) refuse(`${what} does not lie on the grid of 2^-${bits}`);
  return m << BigInt(bits + e);
}

/** A fraction whose bottom is a power of two, in units of 2^-bits. */
function scaledFraction([top, bottom], bits, what) {
  const units = top << BigInt(bits);
  if (units % bottom !== 0n) refuse(`${what} does not lie on the grid of 2^-${bits}`);
  return units / bottom;
}

/** The float64 nearest to a fraction; a half goes to the even one. */
function nearest([top, bottom]) {
  if (top === 0n) return 0;
  if (top < 0n) return -nearest([-top, bottom]);
  let e = Math.max(bitLength(top) - bitLength(bottom) - 53, -1074);
  for (;; e++) {
    const [a, b] = e >= 0 ? [top, bottom << BigInt(e)] : [top << BigInt(-e), bottom];
    const m = F.round([a, b]);
    if (m > 1n << 53n) continue;
    return ldexp(Number(m), e);
  }
}

function ldexp(x, e) {
  while (e > 1000) { x *= 2 ** 1000; e -= 1000; }
  if (e < -1000) { x *= 2 ** -1000; e += 1000; }
  return x * 2 ** Math.max(e, -1074);
}

/** a 2^-bits in floating point, for guesses only. */
function approximate(a, bits) {
  let shift = 0;
  if (a >= 1n << 1000n || a <= -(1n << 1000n)) {
    shift = bitLength(a) - 64;
    a >>= BigInt(shift);
  }
  let x = Number(a), e = shift - bits;
  while (e < -1000 && x !== 0) { x *= 2 ** -1000; e += 1000; }
  while (e > 1000 && Number.isFinite(x)) { x *= 2 ** 1000; e -= 1000; }
  return x === 0 || !Number.isFinite(x) ? x : x * 2 ** e;
}

/** A float64 as Python writes it. */
export function written(x) {
  if (Object.is(x, -0)) return "-0.0";
  if (x === 0) return "0.0";
  const [mantissa, power] = Math.abs(x).toExponential().split("e"), sign = x < 0 ? "-" : "";
  const digits = mantissa.replace(".", ""), e = Number(power);
  if (e < -4 || e >= 16) {
    const rest = digits.length > 1 ? "." + digits.slice(1) : "";
    return `${sign}${digits[0]}${rest}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
  }
  if (e < 0) return `${sign}0.${"0".repeat(-e - 1)}${digits}`;
  const whole = digits.slice(0, e + 1).padEnd(e + 1, "0");
  return `${sign}${whole}.${digits.slice(e + 1) || "0"}`;
}

/** The shortest decimal that reads back as a float64. */
function decimal(x) {
  if (Number.isInteger(x) && Math.abs(x) < 2 ** 53) return F.of(x);
  const [mantissa, power] = x.toExponential().split("e");
  const [whole, rest = ""] = mantissa.split(".");
  const e = Number(power) - rest.length, top = BigInt(whole + rest);
  return e >= 0 ? [top * 10n ** BigInt(e), 1n] : [top, 10n ** BigInt(-e)];
}

// ---------------------------------------------------------------------- the file

async function inflated(bytes, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const chunks = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel().catch(() => undefined);
      refuse("this certificate is too large for its file");
    }
    chunks.push(value);
  }
  const text = new Uint8Array(size);
  let place = 0;
  for (const chunk of chunks) { text.set(chunk, place); place += chunk.length; }
  return text;
}

/** The text in a file. A file that unpacks without its last byte is followed by something else. */
async function unpacked(bytes) {
  if (bytes.length > MAX_BYTES) refuse(`a certificate has at most ${MAX_BYTES / MIB} MiB`);
  const most = Math.min(MAX_TEXT, FREE_TEXT + TIMES * bytes.length);
  let text;
  try {
    text = await inflated(bytes, most);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    refuse("this is not a certificate, or it is cut off: it cannot be unpacked");
  }
  let whole = false;
  try {
    await inflated(bytes.subarray(0, bytes.length - 1), most);
  } catch {
    whole = true;
  }
  if (!whole) refuse("this certificate is followed by something else");
  return text;
}

const ESCAPES = { '"': '"', "\\": "\\", n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

/** Canonical JSON only: objects are Maps, whole numbers are BigInts, the others are numbers. */
class Reader {
  constructor(bytes, budget) {
    let containers = 0;
    for (const byte of bytes) {
      if (byte === 0x5b || byte === 0x7b) containers++;
      if (byte >= 0x80) refuse("the certificate's JSON is not canonical: it is not ASCII");
    }
    if (containers > MAX_CONTAINERS) refuse(`a certificate has at most ${MAX_CONTAINERS} lists and objects`);
    this.text = new TextDecoder("latin1").decode(bytes);
    this.place = 0;
    this.budget = budget;
    this.stamp = null;
  }
  wrong(why) {
    refuse(`this is not a certificate: its JSON is not canonical at place ${this.place}: ${why}`);
  }
  whole() {
    const value = this.value(0);
    if (this.place !== this.text.length) this.wrong("something follows");
    return value;
  }
  value(depth) {
    if (depth > MAX_NESTING) this.wrong("too deeply nested");
    this.budget.tick();
    const sign = this.text[this.place];
    if (sign === "{") return this.object(depth);
    if (sign === "[") return this.list(depth);
    if (sign === '"') return this.string();
    for (const [word, value] of [["null", null], ["true", true], ["false", false]]) {
      if (this.text.startsWith(word, this.place)) { this.place += word.length; return value; }
    }
    return this.number();
  }
  object(depth) {
    const found = new Map();
    this.place++;
    if (this.text[this.place] === "}") { this.place++; return found; }
    for (let before = null; ; ) {
      const start = this.place;
      if (this.text[start] !== '"') this.wrong("an entry begins with its name");
      const key = this.string();
      if (before !== null && !(before < key)) this.wrong("names must be sorted and stand once");
      before = key;
      if (this.text[this.place++] !== ":") this.wrong("a colon is missing");
      const value = this.place;
      found.set(key, this.value(depth + 1));
      if (depth === 0 && key === "sha256") this.stamp = [start, this.place];
      if (depth === 1 && key === "model") this.model = [value, this.place];
      const next = this.text[this.place++];
      if (next === "}") return found;
      if (next !== ",") this.wrong("an object does not end");
    }
  }
  list(depth) {
    const found = [];
    this.place++;
    if (this.text[this.place] === "]") { this.place++; return found; }
    for (;;) {
      found.push(this.value(depth + 1));
      const next = this.text[this.place++];
      if (next === "]") return found;
      if (next !== ",") this.wrong("a list does not end");
    }
  }
  string() {
    const end = /["\\\u0000-\u001f\u007f]/g;
    end.lastIndex = this.place + 1;
    let text = "", from = this.place + 1;
    for (;;) {
      const found = end.exec(this.text);
      if (found === null) this.wrong("a text does not end");
      const at = found.index;
      text += this.text.slice(from, at);
      if (found[0] === '"') { this.place = at + 1; return text; }
      if (found[0] !== "\\") this.wrong("a control character");
      const letter = this.text[at + 1];
      if (letter in ESCAPES) { text += ESCAPES[letter]; from = at + 2; }
      else {
        const digits = this.text.slice(at + 2, at + 6), code = parseInt(digits, 16);
        if (letter !== "u" || !/^[0-9a-f]{4}$/.test(digits) || "\n\r\t\b\f".includes(String.fromCharCode(code))) this.wrong("a needless escape");
        if (code >= 0x20 && code < 0x7f) this.wrong("a needless escape");
        text += String.fromCharCode(code);
        from = at + 6;
      }
      end.lastIndex = from;
    }
  }
  number() {
    const form = /-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?/y;
    form.lastIndex = this.place;
    const found = form.exec(this.text);
    if (found === null) this.wrong("no value");
    const text = found[0];
    this.place += text.length;
    if (found[1] === undefined && found[2] === undefined) {
      if (text.length > 400 || !/^(0|-?[1-9][0-9]*)$/.test(text)) this.wrong("a whole number is too long, or has zeros in front");
      return BigInt(text);
    }
    const number = text.length < 400 ? Number(text) : NaN;
    if (!Number.isFinite(number) || written(number) !== text) this.wrong("a number is not the shortest one that reads back");
    return number;
  }
}

// ---------------------------------------------------------------------- sha256

const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
/** The first 32 bits behind the point of the k-th root of a prime. */
function rootBits(prime, k) {
  let low = 0n, high = BigInt(prime) << 32n;
  const goal = BigInt(prime) << BigInt(32 * k);
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(k) <= goal) low = middle; else high = middle;
  }
  return Number(low & 0xffffffffn) | 0;
}
const START = primes.slice(0, 8).map((p) => rootBits(p, 2)), CONSTANTS = Int32Array.from(primes, (p) => rootBits(p, 3));

class Sha256 {
  constructor() {
    this.state = Int32Array.from(START);
    this.block = new Uint8Array(64);
    this.used = 0;
    this.length = 0;
    this.words = new Int32Array(64);
  }
  update(bytes) {
    this.length += bytes.length;
    for (let i = 0; i < bytes.length; ) {
      const some = Math.min(64 - this.used, bytes.length - i);
      this.block.set(bytes.subarray(i, i + some), this.used);
      this.used += some;
      i += some;
      if (this.used === 64) { this.mix(); this.used = 0; }
    }
    return this;
  }
  mix() {
    const w = this.words, view = new DataView(this.block.buffer), turn = (x, n) => (x >>> n) | (x << (32 - n));
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(4 * i);
    for (let i = 16; i < 64; i++) {
      const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = this.state;
    for (let i = 0; i < 64; i++) {
      const t = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + CONSTANTS[i] + w[i]) | 0;
      const u = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t) | 0; d = c; c = b; b = a; a = (t + u) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => { this.state[i] += value; });
  }
  hex() {
    const bits = this.length * 8, end = new Uint8Array(((this.used < 56 ? 56 : 120) - this.used) + 8);
    end[0] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(bits));
    this.update(end);
    return Array.from(this.state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }
}

// ---------------------------------------------------------------------- values of the stated form

const short = (value) => {
  const text = typeof value === "string" ? value : value === null ? "null" : value instanceof Map || Array.isArray(value) ? "a list or an object" : String(value);
  return printable(text.slice(0, 60));
};

export function printable(text) {
  return Array.from(text, (c) => (isPrintable(c) ? c : c.codePointAt(0) < 0x100 ? `\\x${c.codePointAt(0).toString(16).padStart(2, "0")}`
    : `\\u{${c.codePointAt(0).toString(16)}}`)).join("");
}

const isPrintable = (text) => !/[\p{C}\p{Zl}\p{Zp}]/u.test(text);
const lengthOf = (text) => { let n = 0; for (const _ of text) n++; return n; };

function entries(value, what, ...keys) {
  if (!(value instanceof Map) || value.size !== keys.length || !keys.every((key) => value.has(key))) refuse(`${what} must have exactly the entries ${keys.join(", ")}`);
  return Object.fromEntries(value);
}

function listed(value, what, length = null) {
  if (!Array.isArray(value) || (length !== null && value.length !== length)) refuse(`${what} must be a list${length === null ? "" : ` of ${length}`}`);
  return value;
}

function whole(value, what, low, high) {
  if (typeof value !== "bigint" || value < BigInt(low) || value > BigInt(high)) refuse(`${what} must be a whole number between ${low} and ${high}; it is ${short(value)}`);
  return value;
}
const index = (value, what, low, high) => Number(whole(value, what, low, high));

/** A finite float64 in hexadecimal. */
function number(value, what) {
  const found = typeof value === "string" ? /^(-?)0x([01])\.(0|[0-9a-f]{13})p([+-])(0|[1-9][0-9]{0,3})$/.exec(value) : null;
  if (found !== null) {
    const [, minus, first, digits, sign, power] = found, e = Number(power) * (sign === "-" ? -1 : 1);
    const zero = first === "0" && digits === "0" && e === 0 && sign === "+";
    const small = first === "0" && digits.length === 13 && e === -1022 && !/^0+$/.test(digits);
    const normal = first === "1" && digits.length === 13 && e >= -1022 && e <= 1023 && (e !== 0 || sign === "+");
    if (zero || small || normal) {
      const bits = zero ? 0n : (small ? 0n : BigInt(e + 1023) << 52n) | BigInt("0x" + digits);
      buffer.setBigUint64(0, bits | (minus ? 1n << 63n : 0n));
      return buffer.getFloat64(0);
    }
  }
  refuse(`${what} must be a finite number in hexadecimal; it is ${short(value)}`);
}

function positive(value, what) {
  const read = number(value, what);
  if (!(read > 0)) refuse(`${what} must be positive`);
  return fraction(read);
}

function text(value, what, most) {
  if (typeof value !== "string" || value === "" || lengthOf(value) > most || !isPrintable(value)) refuse(`${what} must be 1 to ${most} printable characters`);
  return value;
}

// ---------------------------------------------------------------------- the schema

const KINDS = {
  real: [["lower", "upper"], ["step", "missing"]],
  integer: [["lower", "upper", "step"], ["missing"]],
  binary: [["values"], []],
  ordinal: [["levels", "encoding"], ["columns"]],
  categorical: [["categories", "encoding"], ["columns"]],
};
const ENCODINGS = { ordinal: ["thermometer", "onehot", "dummy", "code"], categorical: ["onehot", "dummy", "code"] };
const NOT_WRITTEN_SO = "the schema is not written as ifonly writes it: other entries, other numbers, or another order";

export function optionText(option) {
  if (option === null) return "missing";
  if (option === true) return "True";
  if (option === false) return "False";
  return typeof option === "number" ? written(option) : String(option);
}

/** Equal for options that count as the same: true, 1 and 1.0 do, "1" does not. */
function optionKey(option) {
  if (option === null) return "null";
  if (typeof option === "string") return `text ${option}`;
  if (typeof option === "boolean") return option ? "1" : "0";
  if (typeof option === "bigint") return option.toString();
  return Number.isInteger(option) ? BigInt(option).toString() : written(option);
}

function readSchema(value) {
  if (!(value instanceof Map) || value.get("format") !== "ifonly-schema" || value.get("version") !== 1n) refuse('the schema cannot be read: it has "format": "ifonly-schema" and "version": 1');
  if (value.has("rules")) refuse("the schema has rules of its own; a certificate states every rule among the constraints");
  const given = entries(value, "the schema", "format", "version", "features", ...(value.has("columns") ? ["columns"] : []));
  let count = listed(given.features, "the schema's features").length;
  if (count <= MAX_COLUMNS) for (const one of given.features) if (one instanceof Map) for (const part of one.values()) count += Array.isArray(part) ? part.length : 0;
  if (count > 2 * MAX_COLUMNS) refuse(`the schema has more than ${MAX_COLUMNS} columns, or numbers and options`);
  const features = given.features.map(readFeature), positions = new Map(features.map((f, g) => [f.name, g]));
  if (features.length === 0 || positions.size < features.length) refuse("the schema has no features, or two of the same name");
  const natural = features.flatMap((f) => f.columnNames), width = features.reduce((n, f) => n + (f.options?.length ?? 1), 0);
  if (Math.max(natural.length, width) > MAX_COLUMNS) refuse(`the schema has more than ${MAX_COLUMNS} columns, or numbers and options`);
  let columns = natural;
  if (given.columns !== undefined) {
    columns = listed(given.columns, "the schema's columns");
    if (columns.length === natural.length && columns.every((name, i) => name === natural[i])) refuse(NOT_WRITTEN_SO);
  }
  const places = new Map(columns.map((name, i) => [name, i]));
  if (columns.length !== natural.length || places.size < columns.length || !natural.every((name) => places.has(name))) refuse("the schema's columns are not those of its features, each once");
  for (const feature of features) feature.places = feature.columnNames.map((name) => places.get(name));
  return { features, positions, columns };
}

function readFeature(item) {
  const kind = item instanceof Map ? item.get("kind") : null;
  if (typeof kind !== "string" || !Object.hasOwn(KINDS, kind)) refuse("a feature of the schema is of no known kind");
  const [required, optional] = KINDS[kind], may = ["kind", "name", "label", "unit", ...required, ...optional];
  if (!["name", ...required].every((key) => item.has(key)) || ![...item.keys()].every((key) => may.includes(key))) refuse(NOT_WRITTEN_SO);
  const name = text(item.get("name"), "a feature's name", 200);
  if (item.has("label")) text(item.get("label"), `the label of '${name}'`, 200);
  if (item.has("unit")) text(item.get("unit"), `the unit of '${name}'`, 40);
  if (item.has("missing") && item.get("missing") !== true) refuse(NOT_WRITTEN_SO);
  const feature = { name, kind, label: item.get("label"), unit: item.get("unit"), columnNames: [name] };
  if (kind === "real") return readReal(feature, item);
  if (kind === "integer") return readInteger(feature, item);
  return readChoice(feature, item);
}

function readReal(feature, item) {
  const lower = item.get("lower"), upper = item.get("upper");
  if (typeof lower !== "number" || typeof upper !== "number" || Object.is(lower, -0) || Object.is(upper, -0)) refuse(NOT_WRITTEN_SO);
  if (lower > upper || !Number.isFinite(upper - lower)) refuse(`the ends of '${feature.name}' are no interval of float64`);
  Object.assign(feature, { lower, upper, step: null });
  if (item.has("step")) readSteps(feature, item.get("step"));
  return feature;
}

function readSteps(feature, given) {
  const { lower, upper } = feature;
  let step = F.of(0);
  if (typeof given === "number") step = given > 0 ? decimal(given) : step;
  else if (typeof given === "string" && /^[1-9][0-9]{0,17}\/[1-9][0-9]{0,17}$/.test(given)) {
    const [top, bottom] = given.split("/").map(BigInt);
    if (bottom === 1n || divisor(top, bottom) !== 1n || F.cmp(decimal(nearest([top, bottom])), [top, bottom]) === 0) refuse(NOT_WRITTEN_SO);
    step = [top, bottom];
  }
  if (step[0] <= 0n || nearest(step) < 2 ** -1022) refuse(`the step of '${feature.name}' is no positive number`);
  let start = decimal(lower);
  const multiple = F.mul(F.of(F.round(F.div(start, step))), step);
  if (nearest(multiple) === lower) start = multiple;
  const [a, b] = [F.lowest(start), F.lowest(step)], over = (a[1] * b[1]) / divisor(a[1], b[1]);
  let steps = F.floor(F.div(F.sub(decimal(upper), start), step));
  steps = steps < 0n ? 0n : steps;
  const at = (k) => F.add(start, F.mul(F.of(k), step)), end = F.abs(at(steps + 2n));
  const fine = [F.abs(start), end, F.of(1)].every((v) => F.cmp(F.mul(v, F.of(over)), F.of(2n ** 50n)) <= 0);
  const wide = F.cmp(step, F.sub(decimal(upper), decimal(lower))) <= 0;
  const count = [steps + 1n, steps].find((k) => nearest(at(k)) === upper && (k > 0n || wide));
  if (!fine || count === undefined) refuse(`'${feature.name}' has an upper end that is no step, or steps that are too fine for float64`);
  Object.assign(feature, { step, start, steps: count });
}

function divisor(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

function readInteger(feature, item) {
  const [lower, upper, step] = ["lower", "upper", "step"].map((key) => item.get(key)), most = 2n ** 52n;
  if (![lower, upper, step].every((v) => typeof v === "bigint")) refuse(NOT_WRITTEN_SO);
  if (lower < -most || lower > upper || upper > most || step < 1n || step > most || (upper - lower) % step !== 0n) refuse(`the ends of '${feature.name}' are not whole steps apart, or beyond 2^52`);
  return Object.assign(feature, { lower: Number(lower), upper: Number(upper), step: F.of(step) });
}

function readChoice(feature, item) {
  const { kind, name } = feature;
  const options = listed(item.get({ binary: "values", ordinal: "levels", categorical: "categories" }[kind]), `the options of '${name}'`);
  for (const option of options) {
    if (option instanceof Map || Array.isArray(option)) refuse(`an option of '${name}' is neither text nor a number nor true, false or null`);
    if (typeof option === "bigint" && bitLength(option) > 1024) refuse(`an option of '${name}' is too large`);
  }
  const encoding = kind === "binary" ? "code" : item.get("encoding");
  if (options.length === 0 || new Set(options.map(optionKey)).size < options.length || (kind === "binary" && options.length !== 2)) refuse(`'${name}' has no options, or one twice, or is binary without having two`);
  if (kind !== "binary" && !ENCODINGS[kind].includes(encoding)) refuse(`the encoding of '${name}' does not fit its kind`);
  if (encoding === "dummy" && options.length < 2) refuse(`the encoding of '${name}' does not fit its kind`);
  Object.assign(feature, { options, encoding });
  const first = encoding === "dummy" ? 1 : 0, sign = encoding === "thermometer" ? ">=" : "=";
  const count = encoding === "code" ? 1 : options.length - first;
  if (item.has("columns")) feature.columnNames = listed(item.get("columns"), `the columns of '${name}'`, count).map((c) => text(c, `a column of '${name}'`, 200));
  else if (encoding !== "code") feature.columnNames = options.slice(first).map((o) => `${name}${sign}${optionText(o)}`);
  if (feature.columnNames.length !== count || (item.has("columns") && count === 0)) refuse(`'${name}' has ${count} columns; its list names others`);
  return feature;
}

/** A row of the schema: one float64 per feature. */
function readPoint(schema, value, what) {
  return listed(value, what, schema.features.length).map((one, g) => {
    const x = number(one, what), f = schema.features[g];
    let good = f.options ? Number.isInteger(x) && x >= 0 && x < f.options.length : x >= f.lower && x <= f.upper;
    if (good && f.kind === "integer") good = F.isWhole(F.div(F.sub(fraction(x), fraction(f.lower)), f.step));
    if (!good) refuse(`${what} is no row of the schema: '${f.name}' cannot be ${x}`);
    return x;
  });
}

// ---------------------------------------------------------------------- what a feature may become

/** An interval of changes in units of 2^-P; on a grid of `step` units, on `steps`, or of any numbers. */
class Domain {
  constructor(low, high, { step = 0n, steps = null, options = null } = {}) {
    Object.assign(this, { low, high, step, steps, options });
  }
  get coarse() { return this.step !== 0n || this.steps !== null; }
  /** Ends moved inward to allowed changes; low > high where there is none. */
  inward(low, high) {
    if (this.step) return [ceil(low, this.step) * this.step, floor(high, this.step) * this.step];
    if (this.steps === null) return [low, high];
    const up = this.steps.up(low), down = this.steps.down(high);
    return up === null || down === null ? [1n, 0n] : [up, down];
  }
  /** The largest change up to `at`, and the next one. */
  parted(at) {
    if (this.step) { const below = floor(at, this.step) * this.step; return [below, below + this.step]; }
    if (this.steps === null) return [at, at];
    const down = this.steps.down(at), up = this.steps.up(at + 1n);
    return [down ?? this.low - 1n, up ?? this.high + 1n];
  }
}

/** Values start + k step on decimals, each rounded once, for k from first to last; and the factual's own. */
class Steps {
  constructor(start, step, first, last, before, grid) {
    Object.assign(this, { start, step, first, last, before: fraction(before), grid });
  }
  change(k) {
    const value = nearest(F.add(this.start, F.mul(F.of(k), this.step)));
    if (!Number.isFinite(value)) refuse("a value on the grid of a feature is beyond float64");
    return scaledFraction(F.sub(fraction(value), this.before), this.grid, "a value on the grid of a feature");
  }
  near(change) {
    const value = F.add(this.before, [change, 1n << BigInt(this.grid)]);
    return largest(F.floor(F.div(F.sub(value, this.start), this.step)) - 1n, this.first);
  }
  up(change) {
    let k = this.near(change);
    while (k <= this.last && this.change(k) < change) k++;
    const found = k <= this.last ? this.change(k) : null;
    return change <= 0n ? (found === null ? 0n : least(found, 0n)) : found;
  }
  down(change) {
    let k = least(this.near(change) + 3n, this.last);
    while (k >= this.first && this.change(k) > change) k--;
    const found = k >= this.first ? this.change(k) : null;
    return change >= 0n ? (found === null ? 0n : largest(found, 0n)) : found;
  }
}

const OF_ONE = { fixed: [], only_up: [], only_down: [], range: ["lower", "upper"], allowed: ["options"], max_delta: ["by", "share"], steps: ["step"] };
const RULES = ["clause", "max_changes", "fewest_changes", "only_with", "apart"];

function readDomains(schema, factual, constraints, grid, budget) {
  const ends = schema.features.map((f) => (f.options ? [0, f.options.length - 1] : [f.lower, f.upper]));
  const allowed = schema.features.map((f) => (f.options ? new Set(f.options.keys()) : null)), steps = new Map();
  for (const constraint of constraints) {
    budget.tick();
    const kind = constraint.get("kind");
    if (RULES.includes(kind)) continue;
    const given = entries(constraint, "a constraint", "kind", "feature", ...OF_ONE[kind]), g = schema.positions.get(given.feature);
    if (g === undefined) refuse(`a constraint is about an unknown feature, ${short(given.feature)}`);
    const feature = schema.features[g];
    if (kind === "steps") steps.set(g, coarser(feature, number(given.step, "a step"), steps.get(g)));
    else narrowFeature(feature, factual[g], given, ends[g], allowed[g]);
  }
  return schema.features.map((f, g) => {
    budget.tick();
    const [low, high] = ends[g];
    if (f.options) return new Domain(0n, 0n, { options: [...allowed[g]].filter((o) => o >= low && o <= high).sort((a, b) => a - b) });
    if (low > high) return new Domain(1n, 0n);
    const before = fraction(factual[g]);
    const [first, last] = [low, high].map((end) => scaledFraction(F.sub(fraction(end), before), grid, `an end of '${f.name}'`));
    const domain = f.kind === "integer" ? new Domain(0n, 0n, { step: F.floor(steps.get(g) ?? f.step) << BigInt(grid) })
      : new Domain(0n, 0n, { steps: stepsOf(f, factual[g], steps.get(g) ?? null, grid) });
    [domain.low, domain.high] = domain.inward(first, last);
    return domain;
  });
}

function coarser(feature, given, before) {
  if (feature.options || !(given > 0)) refuse(`'${feature.name}' cannot move in such steps`);
  const step = decimal(given), divides = (a, b) => F.isWhole(F.div(a, b));
  if (feature.step !== null && !divides(step, feature.step)) refuse(`the step of '${feature.name}' is no multiple of its own`);
  if (before !== undefined && !divides(step, before) && !divides(before, step)) refuse(`'${feature.name}' has two steps that have no common one`);
  if (feature.kind === "real") {
    const unit = F.mul(F.of(4), lastPlace(Math.max(Math.abs(feature.lower), Math.abs(feature.upper))));
    if (F.cmp(step, unit) < 0) refuse(`the step of '${feature.name}' is too fine for float64`);
  }
  return before === undefined || F.cmp(step, before) > 0 ? step : before;
}

/** The distance from a float64 to the next larger one, as a fraction. */
function lastPlace(x) {
  buffer.setFloat64(0, x);
  const exponent = Number((buffer.getBigUint64(0) >> 52n) & 0x7ffn), e = Math.max(exponent, 1) - 1075;
  return e >= 0 ? [1n << BigInt(e), 1n] : [1n, 1n << BigInt(-e)];
}

function narrowFeature(feature, before, given, ends, allowed) {
  const { kind } = given, ordered = !feature.options || feature.kind !== "categorical";
  const from = (low) => { ends[0] = Math.max(ends[0], low); }, to = (high) => { ends[1] = Math.min(ends[1], high); };
  if (["only_up", "only_down", "max_delta"].includes(kind) && !ordered) refuse(`'${feature.name}' has no order`);
  if (kind === "fixed" || kind === "only_up") from(before);
  if (kind === "fixed" || kind === "only_down") to(before);
  if (["fixed", "only_up", "only_down"].includes(kind)) return;
  if (kind === "range" && !feature.options) {
    if (given.lower !== null) from(number(given.lower, "a range's lower end"));
    if (given.upper !== null) to(number(given.upper, "a range's upper end"));
  } else if (kind === "allowed" && feature.options) {
    const those = new Set(listed(given.options, "options").map((o) => index(o, "an allowed option", 0, feature.options.length - 1)));
    for (const option of [...allowed]) if (!those.has(option)) allowed.delete(option);
  } else if (kind === "max_delta") {
    const [by, share] = [given.by, given.share].map((v) => (v === null ? null : number(v, "a largest change")));
    if ((by === null) === (share === null) || (feature.options && by === null)) refuse(`a change of '${feature.name}' is limited by a number or by a share, not by both`);
    const start = decimal(before), most = share === null ? decimal(by) : F.mul(decimal(share), F.abs(start));
    if (most[0] < 0n) refuse("a largest change is negative");
    let low = F.sub(start, most), high = F.add(start, most);
    if (feature.kind !== "real") [low, high] = [F.of(F.ceil(low)), F.of(F.floor(high))];
    from(nearest(low));
    to(nearest(high));
  } else refuse(`there is no constraint '${kind}' for '${feature.name}'`);
}

function stepsOf(feature, before, step, grid) {
  if (step !== null) {
    const start = decimal(before);
    if (feature.step !== null && (!isStep(feature, before) || !F.isWhole(F.div(step, feature.step)))) return new Steps(start, step, 0n, 0n, before, grid);
    const last = F.floor(F.div(F.sub(decimal(feature.upper), start), step)) + 2n;
    const first = F.ceil(F.div(F.sub(decimal(feature.lower), start), step)) - 2n;
    return new Steps(start, step, first, last, before, grid);
  }
  return feature.step === null ? null : new Steps(feature.start, feature.step, 0n, feature.steps, before, grid);
}

function isStep(feature, value) {
  const place = F.div(F.sub(decimal(value), feature.start), feature.step);
  if (F.isWhole(place)) return true;
  const k = largest(least(F.round(place), feature.steps), 0n);
  return nearest(F.add(feature.start, F.mul(F.of(k), feature.step))) === value;
}

// ---------------------------------------------------------------------- rules

function readRules(schema, constraints, budget) {
  const rules = { literals: [], clauses: [], limits: [], partners: [], fewest: null };
  const addClause = (literals) => {
    const first = rules.literals.length;
    if (first + literals.length > MAX_LITERALS) refuse(`there are more than ${MAX_LITERALS} literals`);
    rules.clauses.push(literals.map((_, i) => first + i));
    rules.literals.push(...literals);
  };
  const place = (name) => schema.positions.get(name) ?? refuse(`a rule is about an unknown feature, ${short(name)}`);
  for (const constraint of constraints) {
    budget.tick();
    const kind = constraint.get("kind");
    if (kind === "max_changes" || kind === "fewest_changes") {
      if (kind === "fewest_changes") {
        if (rules.fewest !== null) refuse("the fewest changes are stated twice");
        rules.fewest = rules.limits.length;
      }
      const given = entries(constraint, "a limit on changes", "kind", "most", "uncounted");
      const free = new Set(listed(given.uncounted, "the uncounted features").map(place));
      rules.limits.push([index(given.most, "the most changes", 0, schema.features.length), schema.features.map((_, g) => !free.has(g))]);
    } else if (kind === "only_with") {
      const given = entries(constraint, "a rule about partners", "kind", "feature", "partner");
      rules.partners.push([place(given.feature), place(given.partner)]);
    } else if (kind === "clause") {
      const any = listed(entries(constraint, "a clause", "kind", "any").any, "a clause");
      if (rules.literals.length + any.length > MAX_LITERALS) refuse(`there are more than ${MAX_LITERALS} literals`);
      addClause(any.map((one) => { budget.tick(); return readLiteral(schema, place, one); }));
    } else if (kind === "apart") addClause(apartLiterals(schema, constraint, budget));
  }
  rules.any = rules.clauses.length + rules.limits.length + rules.partners.length > 0;
  return rules;
}

function readLiteral(schema, place, value) {
  if (value instanceof Map && value.has("feature")) {
    const given = entries(value, "a literal", "feature", "options"), g = place(given.feature), { options, name } = schema.features[g];
    if (!options) refuse(`'${name}' has no options`);
    const own = new Set(listed(given.options, "the options of a literal").map((o) => index(o, "an option", 0, options.length - 1)));
    return { numbers: [], options: [[g, options.map((_, o) => (own.has(o) ? 1n : 0n))]], constant: -1n, whole: true };
  }
  const given = entries(value, "a literal", "numbers", "options", "constant");
  const [top, bottom] = listed(given.constant, "the constant of a literal", 2);
  const over = whole(bottom, "the denominator of a constant", 1, MAX_WHOLE), constant = whole(top, "the constant of a literal", -MAX_WHOLE, MAX_WHOLE);
  const numbers = listed(given.numbers, "the numbers of a literal").map((pair) => {
    const [name, a] = listed(pair, "a number of a literal", 2), g = place(name);
    if (schema.features[g].options) refuse("a literal takes a number for options, or options for a number");
    return [g, over * whole(a, "a coefficient", -MAX_WHOLE, MAX_WHOLE)];
  });
  const options = listed(given.options, "the options of a literal").map((pair) => {
    const [name, values] = listed(pair, "an option of a literal", 2), g = place(name), own = schema.features[g].options;
    if (!own) refuse("a literal takes a number for options, or options for a number");
    return [g, listed(values, "the values of options", own.length).map((v) => over * whole(v, "the value of an option", -MAX_WHOLE, MAX_WHOLE))];
  });
  const named = [...numbers, ...options].map(([g]) => g);
  if (new Set(named).size < named.length) refuse("a literal names a feature twice");
  return { numbers, options, constant, whole: over === 1n && numbers.every(([g]) => schema.features[g].kind === "integer") };
}

/** At least so far from another row: a literal per choice of the sides of its numbers, on each of which the distance is a line. */
function apartLiterals(schema, constraint, budget) {
  const what = "a rule about another row", { features } = schema, n = F.of(features.length);
  const given = entries(constraint, what, "kind", "point", "at_least", "jump", "rate", "weights", "scales"), point = readPoint(schema, given.point, "the row to be apart from");
  const [least, jump, rate] = ["at_least", "jump", "rate"].map((key) => number(given[key], `the ${key} of ${what}`));
  if (!(least > 0) || jump < 0 || rate < 0 || (jump === 0 && rate === 0)) refuse(`${what} has a positive distance, and shares of l0 and l1`);
  const [weights, scales] = ["weights", "scales"].map((key) => listed(given[key], `the ${key} of ${what}`, features.length));
  const size = (value) => { const read = number(value, `a weight or scale of ${what}`); return read > 0 ? decimal(read) : refuse(`the weights and scales of ${what} are positive`); };
  const lines = [], options = [];
  features.forEach((f, g) => {
    budget.tick();
    const share = F.div(size(weights[g]), n);
    if (f.options) {
      if (scales[g] !== null) refuse(`'${f.name}' has no scale in ${what}`);
      options.push([g, f.options.map((_, o) => {
        if (o === point[g]) return F.of(0);
        const moved = f.kind === "ordinal" ? [BigInt(Math.abs(o - point[g])), BigInt(f.options.length)] : F.of(1);
        return F.mul(share, F.add(decimal(jump), F.mul(decimal(rate), moved)));
      })]);
      return;
    }
    const low = decimal(f.lower), high = decimal(f.upper), p = decimal(point[g]), wide = F.cmp(low, high) < 0;
    if (jump > 0 && wide) refuse(`'${f.name}' cannot count by how often it differs from another row's`);
    const scale = scales[g] !== null ? size(scales[g]) : wide ? F.sub(high, low) : F.of(1);
    const slope = F.div(F.mul(decimal(rate), share), scale);
    const sides = slope[0] === 0n || F.cmp(p, low) <= 0 ? [1n] : F.cmp(p, high) >= 0 ? [-1n] : [1n, -1n];
    lines.push({ g, slope, start: F.mul(slope, p), sides });
  });
  const open = lines.filter(({ sides }) => sides.length > 1).length;
  if (open > MAX_SIDES) refuse(`more than ${MAX_SIDES} numbers may be on either side of another row's`);
  const middle = F.div(F.add(fraction(least), fraction(previousFloat(least))), F.of(2)), whole = lines.every(({ g }) => features[g].kind === "integer");
  let over = 1n;
  for (const part of [middle, ...lines.flatMap(({ slope, start }) => [slope, start]), ...options.flatMap(([, own]) => own)]) {
    const [, bottom] = F.lowest(part); // the least common denominator
    over = (over * bottom) / divisor(over, bottom);
  }
  const times = ([top, bottom]) => (top * over) / bottom, values = options.map(([g, own]) => [g, own.map(times)]);
  const literals = [];
  budget.keep(BITS_OF_OBJECT / 4 * (features.length + 4) * 2 ** open);
  const slopes = lines.map(({ slope }) => times(slope)), starts = lines.map(({ start }) => times(start));
  for (let choice = 0; choice < 2 ** open; choice++) {
    budget.tick();
    let left = open;
    const signs = lines.map(({ sides }) => (sides.length > 1 ? sides[(choice >> --left) & 1] : sides[0]));
    literals.push({
      numbers: lines.map(({ g }, k) => [g, signs[k] * slopes[k]]), options: values, whole,
      constant: starts.reduce((sum, start, k) => sum - signs[k] * start, -times(middle)),
    });
  }
  return literals;
}

/** The float64 before a positive one. */
function previousFloat(x) {
  buffer.setFloat64(0, x);
  buffer.setBigInt64(0, buffer.getBigInt64(0) - 1n);
  return buffer.getFloat64(0);
}

function holds(literal, point) {
  let total = F.of(literal.constant);
  for (const [g, a] of literal.numbers) total = F.add(total, F.mul(F.of(a), decimal(point[g])));
  for (const [g, values] of literal.options) total = F.add(total, F.of(values[point[g]]));
  return total[0] >= 0n;
}

// ---------------------------------------------------------------------- the question

const NORMS = { l0: "sum", l1: "sum", "l0+l1": "sum", l2: "square", linf: "max" };

const SMOOTH = ["sigmoid", "tanh", "softplus", "gelu", "gelu_tanh", "silu"], ACTIVATIONS = ["relu", ...SMOOTH, "elu", "power"];

function readLayers(model, inputs, budget, ...more) {
  return readStack(entries(model, "the model", "kind", "layers", ...more).layers, inputs, budget);
}

function readStack(value, inputs, budget) {
  const layers = listed(value, "the network");
  let total = 0;
  const stack = layers.map((one, k) => {
    budget.look();
    const given = entries(one, `layer ${k}`, "weight", "bias");
    const bias = listed(given.bias, `the biases of layer ${k}`), rows = listed(given.weight, `the weights of layer ${k}`, bias.length);
    total += bias.length * inputs;
    if (bias.length === 0 || total > MAX_WEIGHTS) refuse(`layer ${k} is empty, or the network has more than ${MAX_WEIGHTS} weights`);
    const weight = rows.map((row) => { budget.tick(); return listed(row, `the weights of layer ${k}`, inputs).map((v) => number(v, `a weight of layer ${k}`)); });
    inputs = bias.length;
    return { weight, bias: bias.map((v) => number(v, `a bias of layer ${k}`)) };
  });
  if (stack.length === 0) refuse("the network has no layers");
  return stack;
}

/** sha256 over a mark, and per layer its two sizes and its numbers row by row, little-endian. */
function fingerprint(stack, budget) {
  const digest = new Sha256().update(new TextEncoder().encode("ifonly-network-1"));
  for (const { weight, bias } of stack) {
    const sizes = new DataView(new ArrayBuffer(16));
    sizes.setBigInt64(0, BigInt(weight.length), true);
    sizes.setBigInt64(8, BigInt(weight[0].length), true);
    digest.update(new Uint8Array(sizes.buffer));
    for (const row of [...weight, bias]) {
      budget.tick();
      const view = new DataView(new ArrayBuffer(8 * row.length));
      row.forEach((v, i) => view.setFloat64(8 * i, v, true));
      digest.update(new Uint8Array(view.buffer));
    }
  }
  return digest.hex();
}

const PARTS = 1n << 40n, EXP_BITS = 256n, HALVINGS = 16n, TERMS = 24n, FARTHEST = 128n, MAX_PLANES = 1_000;

/** exp(y) from below and above in units of 2^-256, for 0 <= y <= 128: the Taylor series of y 2^-16, squared 16 times. */
function expBounds([top, bottom]) {
  const from = floor(top << EXP_BITS, bottom), small = from >> HALVINGS, large = -(-(from + 1n) >> HALVINGS);
  let low = 1n << EXP_BITS, high = low, lowTerm = low, highTerm = low;
  for (let k = 1n; k < TERMS; k++) {
    lowTerm = ((lowTerm * small) >> EXP_BITS) / k;
    highTerm = ceil(-(-(highTerm * large) >> EXP_BITS), k);
    low += lowTerm;
    high += highTerm;
  }
  high += highTerm + 1n; // what follows is less than the last term
  for (let k = 0n; k < HALVINGS; k++) { low = (low * low) >> EXP_BITS; high = -(-(high * high) >> EXP_BITS); }
  return [low, high];
}

/** The logistic function 1 / (1 + exp(-z)) of z 2^-P from below and above, in units of 2^-256. */
function logisticBounds(z, P) {
  const one = 1n << EXP_BITS, far = FARTHEST << P, [low, high] = expBounds([least(abs(z), far), 1n << P]);
  if (z < 0n) return [z < -far ? 0n : (one << EXP_BITS) / (one + high), ceil(one << EXP_BITS, one + low)];
  return [(low << EXP_BITS) / (one + low), z > far ? one : ceil(high << EXP_BITS, one + high)];
}

/** Its derivative s (1 - s), in the same units. */
function logisticSlope(z, P) {
  const one = 1n << EXP_BITS, [low, high] = logisticBounds(abs(z), P);
  return [(low * largest(one - high, 0n)) >> EXP_BITS, -(-(high * (one - low)) >> EXP_BITS)];
}

/** A line above the logistic function on [low, high]: slope in units of 2^-S, shift in units of 2^-(P + S), rounded up. */
function lineAbove(low, high, P) {
  const less = EXP_BITS - SLOPE, at = touching(low, high, P), point = at ?? high;
  let slope;
  if (at !== null || low === high) slope = logisticSlope(point, P)[0] >> less;
  else slope = (largest(logisticBounds(high, P)[1] - logisticBounds(low, P)[0], 0n) << (P + SLOPE)) / ((high - low) << EXP_BITS);
  const shifts = [];
  if (low < 0n) for (const z of [low, least(high, 0n)]) shifts.push(-((-logisticBounds(z, P)[1] << (P + SLOPE)) >> EXP_BITS) - slope * z);
  if (high >= 0n) {
    const there = logisticBounds(point, P)[1], [flattest, steepest] = logisticSlope(point, P);
    for (const z of [largest(low, 0n), high]) shifts.push(-(-((there << P) + (z > point ? steepest : flattest) * (z - point)) >> less) - slope * z);
  }
  return [slope, shifts.reduce(largest)];
}

/** The point above 0, nearest to the middle, whose tangent is above the lower end; null: the line is the chord. */
function touching(low, high, P) {
  if (high <= 0n) return null;
  const far = FARTHEST << P, [left, right] = [low, high].map((end) => approximate(largest(least(end, far), -far), Number(P)));
  const value = (x) => 1 / (1 + Math.exp(-x)), isAbove = (x) => { const v = value(x); return v + v * (1 - v) * (left - x) >= value(left); };
  let bad = Math.max(0.5 * (left + right), 0), good = right;
  if (low >= 0n || isAbove(bad)) good = bad;
  else if (!isAbove(right)) return null;
  else for (let k = 0; k < 14; k++) { const middle = 0.5 * (bad + good); if (isAbove(middle)) good = middle; else bad = middle; }
  return largest(largest(least(F.floor(F.mul(fraction(good), [1n << P, 1n])), high), low), 0n);
}

// Activations: f(z) and f'(z) of z 2^-P, each from below and above in units of 2^-256.

const EXP_ONE = 1n << EXP_BITS;
const product = (a, b) => { const ends = a.flatMap((x) => b.map((y) => x * y)); return [ends.reduce(least) >> EXP_BITS, -(-ends.reduce(largest) >> EXP_BITS)]; };
/** A multiple of bounds by a fraction. */
const multiple = (ends, [top, bottom]) => { const both = ends.map((end) => end * top); return [floor(both.reduce(least), bottom), ceil(both.reduce(largest), bottom)]; };
const inUnits = (z, P) => (P <= EXP_BITS ? [z << (EXP_BITS - P), z << (EXP_BITS - P)] : [z >> (P - EXP_BITS), -(-z >> (P - EXP_BITS))]);

/** exp of bounds in units of 2^-256. */
function expOf([low, high]) {
  const far = FARTHEST << EXP_BITS;
  if (high > far) refuse(`an activation leads to exp of more than ${FARTHEST}`);
  const one = (power) => {
    const [below, above] = expBounds([least(abs(power), far), EXP_ONE]);
    return power >= 0n ? [below, above] : [power < -far ? 0n : (EXP_ONE << EXP_BITS) / above, ceil(EXP_ONE << EXP_BITS, below)];
  };
  return [one(low)[0], one(high)[1]];
}
const expOfMinus = (size, P) => expOf(inUnits(-size, P));

/** atanh of t, at most about 1/3, by its series. */
function areaTangent(t) {
  let low = 0n, high = 0n, small = t, large = t;
  for (let k = 1n; large > 1n; k += 2n) {
    low += small / k;
    high += ceil(large, k);
    small = (((small * t) >> EXP_BITS) * t) >> EXP_BITS;
    large = -((-(-((-large * t) >> EXP_BITS)) * t) >> EXP_BITS);
  }
  return [low, high + 2n * large];
}
/** log(1 + w), w from 0 to 1. */
function logOfOneAnd([low, high]) {
  const from = largest(low, 0n), to = least(high, EXP_ONE);
  return [2n * areaTangent((from << EXP_BITS) / (2n * EXP_ONE + from))[0], 2n * areaTangent(ceil(to << EXP_BITS, 2n * EXP_ONE + to))[1]];
}
/** log of z 2^-P, above 0. */
function logarithm(z, P) {
  const power = BigInt(bitLength(z) - 1), top = (z - (1n << power)) << EXP_BITS, bottom = z + (1n << power), n = power - P;
  const two = [2n * areaTangent(EXP_ONE / 3n)[0], 2n * areaTangent(ceil(EXP_ONE, 3n))[1]];
  return [2n * areaTangent(top / bottom)[0] + n * two[n > 0n ? 0 : 1], 2n * areaTangent(ceil(top, bottom))[1] + n * two[n > 0n ? 1 : 0]];
}

let rootOfTwoPi = null;
/** The square root of 2 pi, by pi = 16 atan(1/5) - 4 atan(1/239). */
function rootOfTwoPiBounds() {
  if (rootOfTwoPi === null) {
    const arc = (n) => {
      let sum = 0n, k = 0n;
      for (let power = EXP_ONE / n; power > 0n; power /= n * n, k++) sum += (k & 1n ? -1n : 1n) * (power / (2n * k + 1n));
      return [sum - 2n * (k + 1n), sum + 2n * (k + 1n)];
    };
    const [a, b] = arc(5n), [c, d] = arc(239n);
    rootOfTwoPi = [squareRoot((2n * (16n * a - 4n * d)) << EXP_BITS), squareRoot((2n * (16n * b - 4n * c)) << EXP_BITS) + 1n];
  }
  return rootOfTwoPi;
}
/** The integral of the normal density from 0 to a = size 2^-P <= 12, and the density at a. */
function normalBounds(size, P) {
  const a = inUnits(size, P), square = [(a[0] * a[0]) >> EXP_BITS, -((-a[1] * a[1]) >> EXP_BITS)], root = rootOfTwoPiBounds();
  const bottom = product(expOf([square[0] >> 1n, -(-square[1] >> 1n)]), root);
  let low = 0n, high = 0n, [small, large] = a;
  for (let k = 3n; large > 1n || 2n * square[1] > k << EXP_BITS; k += 2n) {
    low += small;
    high += large;
    small = ((small * square[0]) >> EXP_BITS) / k;
    large = ceil(-((-large * square[1]) >> EXP_BITS), k);
  }
  high += 2n * large + 2n;
  return [[(low << EXP_BITS) / bottom[1], ceil(high << EXP_BITS, bottom[0])], [(EXP_ONE << EXP_BITS) / bottom[1], ceil(EXP_ONE << EXP_BITS, bottom[0])]];
}

const TANH_FACTOR = 0.7978845608028654, TANH_CUBIC = 0.044715, FAR_NORMAL = 12n;
/** Where each bends: between so many units of 2^-60 and one more; and where it is least, about. */
const TURNS = { gelu: 1630477228166597776n, gelu_tanh: 1635423776105965834n, silu: 2766270605941285588n };
const LEAST_AT = { gelu: -0.7517915246935645, gelu_tanh: -0.7524614220710163, silu: -1.2784645427610738 };

/** Value and slope at a >= 0 of what is a times a share that grows from 1/2 to 1. */
const SHARES = {
  silu(a, P) {
    const part = logisticBounds(a, P), size = inUnits(a, P), rest = [EXP_ONE - part[1], EXP_ONE - part[0]];
    const bend = a > FARTHEST << P ? [0n, FARTHEST * rest[1]] : product(product(size, part), rest);
    return [product(size, part), [part[0] + bend[0], part[1] + bend[1]]];
  },
  gelu(a, P) {
    const size = inUnits(a, P);
    if (a > FAR_NORMAL << P) {
      const most = normalBounds(FAR_NORMAL << P, P)[1][1];
      return [[size[0] - most, size[1]], [EXP_ONE - most, EXP_ONE + FAR_NORMAL * most]];
    }
    const [integral, density] = normalBounds(a, P), share = integral.map((v) => v + (EXP_ONE >> 1n)), bend = product(size, density);
    return [product(size, share), [share[0] + bend[0], share[1] + bend[1]]];
  },
  gelu_tanh(a, P) {
    const z = [a, 1n << P], two = F.mul(F.of(2), fraction(TANH_FACTOR)), cubed = F.mul(fraction(TANH_CUBIC), F.mul(z, F.mul(z, z)));
    const y = F.lowest(F.mul(two, F.add(z, cubed))), part = logisticBounds(y[0], BigInt(bitLength(y[1]) - 1)), size = inUnits(a, P), rest = [EXP_ONE - part[1], EXP_ONE - part[0]];
    const steep = F.mul(two, F.add(z, F.mul(F.of(3), cubed))), from = (steep[0] << EXP_BITS) / steep[1];
    const bend = F.cmp(y, F.of(FARTHEST)) > 0 ? [0n, 3n * FARTHEST * rest[1]] : product(product([from, from + 1n], part), rest);
    return [product(size, part), [part[0] + bend[0], part[1] + bend[1]]];
  },
};

/** Value and slope of an activation. */
function activationBounds({ name, alpha }, z, P) {
  const whole = [EXP_ONE, EXP_ONE], own = inUnits(z, P), [low, high] = own;
  if (name === "sigmoid") return [logisticBounds(z, P), logisticSlope(z, P)];
  if (name === "identity") return [own, whole];
  if (name === "softplus") {
    const more = logOfOneAnd(expOfMinus(abs(z), P)), from = z > 0n ? own : [0n, 0n];
    return [[from[0] + more[0], from[1] + more[1]], logisticBounds(z, P)];
  }
  if (name === "elu") {
    if (z >= 0n) return [own, whole];
    const down = multiple(expOfMinus(-z, P), alpha), end = multiple(whole, alpha);
    return [[down[0] - end[1], down[1] - end[0]], down];
  }
  if (name === "power") {
    const one = 1n << P, less = F.sub(alpha, F.of(1)), convexUp = alpha[0] > alpha[1];
    if (!convexUp && z <= one) return [[EXP_ONE - high, EXP_ONE - low], [-EXP_ONE, -EXP_ONE]];
    if (convexUp && z <= 0n) return [[0n, 0n], [0n, 0n]];
    const over = alpha[0] === 0n ? null : F.div(F.of(1), alpha);
    if (convexUp && z >= one) { const part = multiple(whole, over); return [[low - EXP_ONE + part[0], high - EXP_ONE + part[1]], whole]; }
    const log = logarithm(z, P), slope = expOf(multiple(log, less));
    if (convexUp) return [multiple(expOf(multiple(log, alpha)), over), slope];
    const grown = over === null ? log : multiple(expOf(multiple(log, alpha)).map((v) => v - EXP_ONE), over);
    return [[-grown[1], -grown[0]], [-slope[1], -slope[0]]];
  }
  const [value, slope] = SHARES[name](abs(z), P);
  if (z >= 0n) return [value, slope];
  return [[value[0] + low, value[1] + high], [EXP_ONE - slope[1], EXP_ONE - slope[0]]]; // f(-a) = f(a) - a
}

/** The least and the largest value on an interval. */
function activationRange(curve, low, high, P) {
  if (low === high) return activationBounds(curve, low, P)[0];
  const [first, from] = activationBounds(curve, low, P), [last, to] = activationBounds(curve, high, P), most = largest(first[1], last[1]);
  let lowest = least(first[0], last[0]);
  if (curve.name in TURNS && from[0] < 0n && to[1] > 0n) { // above its tangent, between the turns
    const at = F.floor(F.mul(fraction(LEAST_AT[curve.name]), F.of(EXP_ONE))), [value, slope] = activationBounds(curve, at, EXP_BITS);
    lowest = least(lowest, value[0] - 6n * largest(-slope[0], slope[1]));
  }
  return [lowest, most];
}

/** Value and slope in floating point. */
function activationGuess({ name, number }, z) {
  const logistic = (x) => { const small = Math.exp(-Math.abs(x)); return (x >= 0 ? 1 : small) / (1 + small); };
  if (name === "softplus") return [Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z))), logistic(z)];
  if (name === "elu") return z >= 0 ? [z, 1] : [number * Math.expm1(z), number * Math.exp(z)];
  if (name === "power" && number > 1) { const x = Math.min(Math.max(z, 0), 1); return [x ** number / number + Math.max(z - 1, 0), x ** (number - 1)]; }
  if (name === "power") return z <= 1 ? [1 - z, -1] : [-(number === 0 ? Math.log(z) : (z ** number - 1) / number), -(z ** (number - 1))];
  if (name === "silu") { const part = logistic(z); return [z * part, part + z * part * (1 - part)]; }
  if (name === "gelu_tanh") {
    const square = TANH_CUBIC * z * z, part = logistic(2 * TANH_FACTOR * z * (1 + square));
    return [z * part, part + 2 * z * TANH_FACTOR * (1 + 3 * square) * part * (1 - part)];
  }
  const density = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
  let sum = 0;
  if (Math.abs(z) < 8) for (let k = 3, term = z; Math.abs(term) > 1e-18; k += 2) { sum += term; term *= z * z / k; }
  const part = Math.abs(z) < 8 ? 0.5 + density * sum : z > 0 ? 1 : density / -z;
  return [z * part, part + z * density];
}

const GUESSED_PIECES = 17, TURN_BITS = 60n;

/** A line above an activation (sign 1n), or above minus it (-1n), on [low, high]: slope and shift as of the logistic. */
function lineOver(curve, sign, low, high, P) {
  const less = EXP_BITS - SLOPE, at = (z) => activationBounds(curve, z, P), signed = ([a, b]) => (sign > 0n ? [a, b] : [-b, -a]);
  const top = (z) => signed(at(z)[0])[1], steep = (z) => signed(at(z)[1]), guess = (x) => activationGuess(curve, x).map((v) => Number(sign) * v);
  const float = (z) => approximate(largest(least(z, 1n << (60n + P)), -(1n << (60n + P))), Number(P));
  const chord = (a, b) => (a === b ? steep(a)[0] >> less : floor((top(b) - top(a)) << (P + SLOPE), (b - a) << EXP_BITS));
  const parts = bendsOn(curve, sign, low, high, P), middle = (low + high) >> 1n;
  let slope, touching = null;
  if (parts.every(([bend]) => bend !== "concave")) slope = chord(low, high);
  else if (parts.length === 1) { touching = middle; slope = steep(middle)[0] >> less; }
  else {
    const places = Array.from({ length: GUESSED_PIECES + 1 }, (_, k) => low + floor((high - low) * BigInt(k), BigInt(GUESSED_PIECES)));
    const points = places.map(float), values = points.map((x) => guess(x)[0]), x = float(middle), [value, rise] = guess(x);
    const inside = parts.some(([bend, a, b]) => bend === "concave" && a <= middle && middle <= b);
    if (inside && points.every((z, k) => values[k] <= value + rise * (z - x))) slope = steep(middle)[0] >> less;
    else slope = chord(...highestAtMiddle(points, values).map((k) => places[k]));
  }
  const shifts = [];
  for (const [bend, a, b] of parts) {
    const ends = [a, b].map((z) => -((-top(z) << (P + SLOPE)) >> EXP_BITS));
    if (bend === "convex") shifts.push(ends[0] - slope * a, ends[1] - slope * b);
    else if (bend === "turning") shifts.push(ends.reduce(largest) + largest(-slope * a, -slope * b));
    else {
      const e = touching ?? whereSteep(approximate(slope, Number(SLOPE)), [a, b], [float(a), float(b)], (z) => guess(z)[1], P), there = top(e), [flattest, steepest] = steep(e);
      for (const z of [a, b]) shifts.push(-(-((there << P) + (z > e ? steepest : flattest) * (z - e)) >> less) - slope * z);
    }
  }
  return [slope, shifts.reduce(largest)];
}

/** Where an activation is convex, where concave, and where it turns, on an interval. */
function bendsOn({ name }, sign, low, high, P) {
  const [own, other] = sign > 0n ? ["convex", "concave"] : ["concave", "convex"];
  if (!(name in TURNS)) return [[own, low, high]];
  const inner = F.floor([TURNS[name] << P, 1n << TURN_BITS]), outer = F.ceil([(TURNS[name] + 1n) << P, 1n << TURN_BITS]);
  const ends = [low, -outer, -inner, inner, outer, high];
  const found = [other, "turning", own, "turning", other].map((bend, k) => [bend, largest(ends[k], low), least(ends[k + 1], high)]);
  return low === high ? [found.find(([, a, b]) => a === b)] : found.filter(([, a, b]) => a < b);
}

/** Two of the points, one on each side of the middle, between which a line is highest there. */
function highestAtMiddle(points, values) {
  const half = points.length / 2, middle = 0.5 * (points[half - 1] + points[half]);
  let best = null, found = [half - 1, half];
  for (let j = half; j < points.length; j++) {
    for (let k = 0; k < half; k++) {
      const wide = points[j] - points[k], height = wide > 0 ? values[k] + (values[j] - values[k]) * ((middle - points[k]) / wide) : values[k];
      if (best === null || height > best) { best = height; found = [k, j]; }
    }
  }
  return found;
}

/** Where on [a, b], in which the slope falls, it is about this one. */
function whereSteep(wanted, [a, b], [left, right], slopeAt, P) {
  if (slopeAt(left) <= wanted) return a;
  if (slopeAt(right) >= wanted) return b;
  for (let k = 0; k < 40; k++) { const middle = 0.5 * (left + right); if (slopeAt(middle) > wanted) left = middle; else right = middle; }
  return largest(least(F.floor(F.mul(fraction(left), [1n << P, 1n])), b), a);
}

/** The activations of a layer: a curve per neuron that is no ReLU, and the neurons with tanh, for which s stands. */
function readLayerActivations(value, width, budget) {
  const parts = Array.isArray(value) ? value.map((pair) => { budget.tick(); return listed(pair, "an activation of some neurons", 2); }).map(([one, count]) => [one, index(count, "how many neurons have an activation", 1, width)]) : [[value, width]];
  const curves = new Map(), doubled = new Set();
  let i = 0;
  for (const [one, count] of parts) {
    budget.tick();
    const { name, curve } = readActivation(one);
    for (const end = i + count; i < end && i <= width; i++) {
      if (curve !== null) curves.set(i, curve);
      if (name === "tanh") doubled.add(i);
    }
  }
  if (i !== width) refuse(`the activations of a layer must be of its ${width} neurons`);
  return { curves, doubled };
}

function readActivation(value) {
  const known = (name, alpha = 1) => ({ name, curve: { name: name === "tanh" ? "sigmoid" : name, alpha: fraction(alpha), number: alpha } });
  if (value === "relu") return { name: value, curve: null };
  if (SMOOTH.includes(value)) return known(value);
  const name = value instanceof Map ? value.get("name") : null;
  if (name === "elu") {
    const alpha = number(entries(value, "an activation", "name", "alpha").alpha, "the alpha of ELU");
    if (!(alpha >= 0 && alpha <= 1)) refuse("the alpha of ELU is from 0 to 1");
    return known(name, alpha);
  }
  if (name !== "power") refuse(`the activations of hidden layers are ${ACTIVATIONS.join(", ")}`);
  const exponent = number(entries(value, "an activation", "name", "exponent").exponent, "the exponent of a power");
  if (exponent === 1) refuse("the exponent of a power is not 1");
  return known(name, exponent);
}

/** Is  sum exp(-c) <= 1  for sure? */
function hasProbability(differences) {
  let total = 0n;
  for (const c of differences) {
    if (c[0] < 0n) return false;
    total += ceil(1n << (2n * EXP_BITS), expBounds(F.cmp(c, F.of(FARTHEST)) > 0 ? F.of(FARTHEST) : c)[0]);
  }
  return total <= 1n << EXP_BITS;
}

/** A probability of one of several classes: conditions that every row which has it meets. `d` may be a fraction. */
function readProbability(value, outputs, planes, budget) {
  const given = entries(value, "the target", "class", "label", "log_odds", "margin"), which = index(given.class, "the wanted class", 0, outputs - 1);
  const least = number(given.log_odds, "the wanted log-odds"), margin = number(given.margin, "the margin"), others = Array.from({ length: outputs }, (_, j) => j).filter((j) => j !== which);
  if (typeof given.label !== "string" || outputs < 2 || margin < 0) refuse("a probability is of one of several classes, which has a label, and its margin is not negative");
  const rows = others.map((j) => [[[which, 1n], [j, -1n]], least]);
  if (listed(planes ?? null, "the planes").length > MAX_PLANES) refuse(`there are more than ${MAX_PLANES} planes`);
  for (const plane of planes) {
    const row = [[which, PARTS]];
    let entropy = F.of(0), sum = 0n;
    listed(plane, "a plane", others.length).forEach((pair, k) => {
      budget.keep(BITS_OF_OBJECT);
      const [partsGiven, boundGiven] = listed(pair, "a weight of a plane", 2), own = whole(partsGiven, "a weight of a plane", 0n, PARTS), bound = number(boundGiven, "a bound of a plane");
      if (!(bound >= 0 && bound <= Number(FARTHEST)) || (own > 0n && expBounds(fraction(bound))[1] * own > PARTS << EXP_BITS)) refuse("a bound of a plane is more than minus the logarithm of its weight");
      row.push([others[k], -own]);
      entropy = F.add(entropy, F.mul(F.of(own), fraction(bound)));
      sum += own;
    });
    if (sum !== PARTS) refuse("the weights of a plane must have the sum 1");
    rows.push([row, F.add(F.add(F.mul(F.of(PARTS), fraction(least)), entropy), F.mul(F.of(PARTS - 1n), fraction(margin)))]);
  }
  return { rows, margin, wanted: `'${printable(given.label.slice(0, 200))}' (class ${which} of ${outputs}) log-odds of at least ${written(least)}`, others: others.length };
}

/** Is a probability of one of several classes asked for? */
function hasCurve(question) {
  const targets = [question instanceof Map ? question.get("target") : null];
  for (const key of ["any", "all"]) for (const one of [...targets]) if (one instanceof Map && Array.isArray(one.get(key))) targets.push(...one.get(key));
  return targets.some((one) => one instanceof Map && one.has("log_odds"));
}

/** d of a condition: a float64, or a fraction whose bottom is a power of two. */
const exactly = (d) => (typeof d === "number" ? fraction(d) : F.lowest(d));

/** What is wanted: conditions  sum of c * output - d - margin >= 0. */
function readTarget(value, outputs, planes, budget) {
  let rows, wanted;
  if (value instanceof Map && value.has("log_odds")) return readProbability(value, outputs, planes, budget);
  if (value instanceof Map && value.has("class")) {
    const given = entries(value, "the target", "class", "label", "margin"), which = index(given.class, "the wanted class", 0, Math.max(outputs - 1, 1));
    if (typeof given.label !== "string") refuse("the wanted class's label must be text");
    rows = outputs === 1 ? [[[[0, which === 1 ? 1n : -1n]], 0]] : Array.from({ length: outputs }, (_, j) => j).filter((j) => j !== which).map((j) => [[[which, 1n], [j, -1n]], 0]);
    wanted = `the decision '${printable(given.label.slice(0, 200))}' (class ${which} of ${Math.max(outputs, 2)})`;
  } else if (value instanceof Map && value.has("ahead")) {
    const given = entries(value, "the target", "ahead", "of", "label", "margin"), which = index(given.ahead, "the wanted class", 0, outputs - 1);
    const others = listed(given.of, "the other classes").map((j) => index(j, "another class", 0, outputs - 1));
    if (typeof given.label !== "string" || others.length === 0 || others.includes(which) || new Set(others).size < others.length) refuse("the wanted class must have a label, and be ahead of others, each once");
    rows = others.map((j) => [[[which, 1n], [j, -1n]], 0]);
    wanted = `class ${which} ('${printable(given.label.slice(0, 200))}') ahead of ${others.map((j) => `class ${j}`).join(", ")}`;
  } else {
    const given = entries(value, "the target", "output", "at_least", "at_most", "margin"), output = index(given.output, "the target's output", 0, outputs - 1), words = [];
    rows = [];
    if (given.at_least !== null) { const end = number(given.at_least, "the target's least score"); rows.push([[[output, 1n]], end]); words.push(`at least ${written(end)}`); }
    if (given.at_most !== null) { const end = number(given.at_most, "the target's largest score"); rows.push([[[output, -1n]], -end]); words.push(`at most ${written(end)}`); }
    if (rows.length === 0) refuse("the target asks for nothing");
    wanted = `score ${output} ${words.join(" and ")}`;
  }
  const margin = number(value.get("margin"), "the margin");
  if (margin < 0) refuse("the margin is negative");
  return { rows, wanted, margin };
}

function readDistance(value, schema) {
  const given = entries(value, "the distance", "norm", "jump", "rate", "transitions", "weights", "scales", "up", "down"), name = given.norm;
  if (typeof name !== "string" || !Object.hasOwn(NORMS, name)) refuse(`there is no norm ${short(name)}`);
  const [jump, rate] = ["jump", "rate"].map((key) => number(given[key], `the distance's ${key}`));
  if (!(name === "l0+l1" ? jump > 0 && rate > 0 : jump === (name === "l0" ? 1 : 0) && rate === (name === "l0" ? 0 : 1))) refuse(`the shares of l0 and the rest do not fit the norm ${name}`);
  const own = {};
  for (const key of ["weights", "scales", "up", "down"]) own[key] = listed(given[key], key, schema.features.length).map((v) => positive(v, key));
  const transitions = new Map();
  for (const one of listed(given.transitions, "the transitions")) {
    const [g, before, after, change] = listed(one, "a transition", 4), which = index(g, "the feature of a transition", 0, schema.features.length - 1);
    const most = (schema.features[which].options?.length ?? 0) - 1;
    const key = [which, index(before, "an option of a transition", 0, most), index(after, "an option of a transition", 0, most)].join();
    if (transitions.has(key)) refuse("a transition is listed twice");
    transitions.set(key, positive(change, "a transition"));
  }
  return { name, norm: NORMS[name], jump: fraction(jump), rate: fraction(rate), ...own, transitions };
}

// ---------------------------------------------------------------------- models in whole numbers

/** A model with what its target asks: a network in whole numbers, trees, or both where there are several. */
function readModel(model, schema, target, P, budget, planes) {
  if (!(model instanceof Map) || model.get("kind") !== "several") return readOne(model, schema, target, P, budget, planes);
  const members = listed(entries(model, "the model", "kind", "models").models, "the models");
  if (members.length === 0 || members.length > MAX_MODELS) refuse(`several models are at least one, and at most ${MAX_MODELS}`);
  const targets = listed(entries(target, "the target of several models", "all").all, "the targets", members.length);
  if (targets.every((one) => one === null)) refuse("the target asks for nothing");
  const read = members.map((one, k) => readOne(one, schema, targets[k], P, budget, planes)), used = [...read.entries()].filter(([k]) => targets[k] !== null);
  const own = used.filter(([, one]) => one.forest === null).map(([, one]) => one), networks = own.map((one) => one.network), forests = used.filter(([, one]) => one.forest !== null).map(([, one]) => one.forest);
  let before = 0;
  const curves = own.flatMap((one) => {
    const start = before;
    before += one.network.biases.at(-1).length;
    return one.curves.map(([first, count]) => [start + first, count]);
  });
  return {
    curves, curved: curvesSideBySide(own),
    network: networks.length > 0 ? sideBySide(networks, schema, P, budget) : nothing(schema),
    forest: forests.length > 0 ? Forest.together(forests, budget) : null,
    wanted: used.map(([k, one]) => `${one.wanted} by model ${k}`).join(" and "),
    margins: read.map((one, k) => (targets[k] === null ? null : one.margins[0])),
    fingerprint: null,
  };
}

/** Of several networks as one: the curves of the neurons of each hidden layer; undefined without any. */
function curvesSideBySide(models) {
  if (!models.some((one) => one.curved)) return undefined;
  const sizes = models.map(({ network }) => network.biases.map((bias) => bias.length)), depth = Math.max(...sizes.map((one) => one.length));
  return Array.from({ length: depth - 1 }, (_, k) => {
    const found = new Map();
    let start = 0;
    models.forEach((one, m) => {
      for (const [i, curve] of curvesOf(one.curved, k)) found.set(start + i, curve);
      start += sizes[m][Math.min(k, Math.max(sizes[m].length - 2, 0))];
    });
    return found;
  });
}

/** The curves of a hidden layer; of one behind the last, what passes on values that may be negative. */
function curvesOf(curved, k) {
  if (!curved || k < curved.length) return curved?.[k] ?? new Map();
  return new Map([...curved.at(-1)].filter(([, { name }]) => name !== "sigmoid" && name !== "softplus").map(([i]) => [i, { name: "identity" }]));
}

function readOne(model, schema, target, P, budget, planes) {
  const kind = model instanceof Map ? model.get("kind") : null;
  const asked = (outputs) => (target === null ? { rows: [], wanted: "", margin: 0 } : readTarget(target, outputs, planes, budget));
  const made = (network, forest, { wanted, margin, others = 0 }, fingerprint) => ({ network, forest, curves: others > 0 && forest === null ? [[0, others]] : [], wanted: `${wanted} with margin ${written(margin)}`, margins: [margin], fingerprint });
  if (kind === "trees") {
    let found;
    const forest = new Forest(model, schema, (outputs) => (found = asked(outputs)), budget);
    forest.curves = found.others > 0 ? [[0, found.others]] : [];
    return made(nothing(schema), forest, found, null);
  }
  if (kind === "smooth") {
    const stack = readLayers(model, schema.columns.length, budget, "activations"), given = listed(model.get("activations"), "the activations", stack.length - 1);
    if (given.length === 0) refuse("a network with activations has hidden layers");
    const found = asked(stack.at(-1).bias.length), read = given.map((one, k) => readLayerActivations(one, stack[k].bias.length, budget));
    return { ...made(inWholeNumbers(stack, found, schema, P, budget, read.map((one) => one.doubled)), null, found, null), curved: read.map((one) => one.curves) };
  }
  if (kind === "reconstruction") {
    const stack = readError(model, schema, budget), found = asked(stack.at(-1).bias.length);
    return made(inWholeNumbers(stack, found, schema, P, budget), null, found, null);
  }
  if (kind !== "network") refuse(`there is no kind of model ${short(kind)}`);
  const stack = readLayers(model, schema.columns.length, budget), found = asked(stack.at(-1).bias.length);
  return made(inWholeNumbers(stack, found, schema, P, budget), null, found, fingerprint(stack, budget));
}

/** The network of an autoencoder's error: of y - x (the columns passed on, less their least values), and of its size. */
function readError(model, schema, budget) {
  const given = entries(model, "the model", "kind", "layers", "norm", "at_most"), n = schema.columns.length, own = readStack(given.layers, n, budget);
  if (own.at(-1).bias.length !== n) refuse("an autoencoder returns as many values as it takes");
  if (given.norm !== "l1" && given.norm !== "linf") refuse("the error of an autoencoder is l1 or linf");
  const most = fraction(number(given.at_most, "the largest error")), widths = [n, ...own.slice(0, -1).map(({ bias }) => bias.length + n), 2 * n + 1, 1];
  if (widths.slice(1).reduce((sum, width, k) => sum + width * widths[k], 0) > MAX_WEIGHTS) refuse(`the network of the error has more than ${MAX_WEIGHTS} weights`);
  budget.keep(4 * BITS_OF_OBJECT * widths.slice(1).reduce((sum, width, k) => sum + width * widths[k], 0));
  const minus = ([a, b]) => [-a, b], zeros = (count) => Array.from({ length: count }, () => F.of(0)), unit = (i, v) => Array.from({ length: n }, (_, j) => F.of(i === j ? v : 0));
  const lowest = zeros(n);
  for (const f of schema.features) if (!f.options) lowest[f.places[0]] = fraction(f.lower);
  const exact = own.map(({ weight, bias }) => ({ weight: weight.map((row) => { budget.tick(); return row.map(fraction); }), bias: bias.map(fraction) }));
  const hidden = exact.slice(0, -1).map(({ weight, bias }, k) => {
    const wide = weight[0].length, units = Array.from({ length: n }, (_, i) => (k === 0 ? unit(i, 1) : [...zeros(wide), ...unit(i, 1)]));
    return { weight: [...weight.map((row) => (k === 0 ? row : [...row, ...zeros(n)])), ...units], bias: [...bias, ...(k === 0 ? lowest.map(minus) : zeros(n))] };
  });
  const last = exact.at(-1), passed = hidden.length > 0;
  const weight = last.weight.map((row, i) => (passed ? [...row, ...unit(i, -1)] : row.map((w, j) => (i === j ? F.sub(w, F.of(1)) : w))));
  const bias = last.bias.map((b, i) => (passed ? F.sub(b, lowest[i]) : b)), both = [...weight, ...weight.map((row) => row.map(minus))], ends = [...bias, ...bias.map(minus)];
  if (given.norm === "l1") return [...hidden, { weight: both, bias: ends }, { weight: [Array.from({ length: 2 * n }, () => F.of(-1))], bias: [most] }];
  return [...hidden, { weight: [...both, zeros(weight[0].length)], bias: [...ends.map((b) => F.sub(b, most)), F.of(0)] }];
}

/** Two layers for nothing but literals. */
const nothing = (schema) => ({ exponents: [0, 0], weights: [[], []], biases: [[], []], columns: schema.features.map((f) => (f.options ? f.options.map(() => []) : [[]])) });

function keepRow(row, budget) {
  let bits = BITS_OF_OBJECT * row.length;
  for (const v of row) bits += v === 0n ? 0 : bitLength(v);
  budget.keep(bits);
  return row;
}

/** Layer k in units of 2^-e[k], biases of 2^-(e[k] + P); the last layer has the conditions. */
function inWholeNumbers(stack, { rows, margin }, schema, P, budget, withTangent = []) {
  const exponents = [], weights = [], biases = [], last = stack.length - 1;
  stack.forEach(({ weight, bias }, k) => {
    const used = [...weight, bias, k === last ? [margin] : []], ends = k === last ? rows.map(([, d]) => exactly(d)) : [];
    const fine = ends.reduce((most, [, bottom]) => Math.max(most, bitLength(bottom) - 1), 0);
    const finenessOf = (v) => (Array.isArray(v) ? bitLength(F.lowest(v)[1]) - 1 : fineness(v)), scaledAs = (v, what) => (Array.isArray(v) ? scaledFraction(v, e, what) : scaled(v, e, what));
    const e = used.reduce((most, row) => { budget.tick(); return row.reduce((a, v) => Math.max(a, finenessOf(v)), most); }, fine);
    let exact = weight.map((row) => keepRow(row.map((v) => scaledAs(v, "a weight")), budget));
    let constant = bias.map((v) => scaledAs(v, "a bias"));
    if (k === last) {
      constant = rows.map(([c], r) => c.reduce((sum, [j, times]) => sum + times * constant[j], 0n) - scaledFraction(ends[r], e, "d") - scaled(margin, e, "the margin"));
      exact = rows.map(([c]) => {
        const sum = exact[0].map(() => 0n);
        for (const [j, times] of c) { budget.tick(); if (times !== 0n) exact[j].forEach((w, t) => { sum[t] += times * w; }); }
        return keepRow(sum, budget);
      });
    }
    exponents.push(e);
    weights.push(exact);
    biases.push(keepRow(constant.map((b) => b << P), budget));
  });
  withTangent.forEach((doubled, k) => { // tanh(z) = 2 s(2 z) - 1
    if (doubled.size === 0) return;
    const twice = (v, i) => (doubled.has(i) ? 2n * v : v);
    weights[k] = weights[k].map((row, i) => row.map((w) => twice(w, i)));
    biases[k] = biases[k].map(twice);
    biases[k + 1] = biases[k + 1].map((b, i) => b - (weights[k + 1][i].reduce((sum, w, j) => (doubled.has(j) ? sum + w : sum), 0n) << P));
    weights[k + 1] = weights[k + 1].map((row) => row.map(twice));
  });
  const first = weights[0];
  const columns = schema.features.map((f) => {
    let own = f.places.map((place) => keepRow(first.map((row) => row[place]), budget));
    if (f.encoding === "thermometer") for (let i = 1; i < own.length; i++) own[i] = keepRow(own[i].map((v, j) => v + own[i - 1][j]), budget);
    else if (f.encoding === "dummy") own = [first.map(() => 0n), ...own];
    else if (f.options && f.encoding === "code") {
      budget.keep(f.options.length * own[0].reduce((bits, w) => bits + bitLength(w) + BITS_OF_OBJECT, 0));
      own = f.options.map((_, o) => own[0].map((w) => BigInt(o) * w));
    }
    return own;
  });
  return { exponents, weights, biases, columns };
}

const identity = (count) => Array.from({ length: count }, (_, i) => Array.from({ length: count }, (_, j) => (i === j ? 1n : 0n)));

/** A network without hidden layers gets one: its conditions, lifted by a power of two that keeps them above 0. */
function withHiddenLayer({ exponents, weights, biases, columns }, schema, P) {
  let size = 0n;
  schema.features.forEach((f, g) => {
    const far = f.options ? 1n : F.ceil(fraction(Math.max(Math.abs(f.lower), Math.abs(f.upper))));
    size += far * columns[g].flat().reduce((most, w) => largest(most, abs(w)), 0n);
  });
  const e = BigInt(exponents[0]), bias = biases[0].reduce((most, b) => largest(most, abs(b)), 0n) >> (e + P);
  const lift = 1n << BigInt(bitLength([size >> e, bias, 1n].reduce(largest)) + 1);
  return {
    exponents: [exponents[0], 0], weights: [weights[0], identity(biases[0].length)], columns,
    biases: [biases[0].map((b) => b + (lift << (e + P))), biases[0].map(() => -(lift << P))],
  };
}

/** Several networks as one: the neurons of each layer one model after the other, shallow ones passed on through ReLUs. */
function sideBySide(networks, schema, P, budget) {
  const depth = Math.max(...networks.map((one) => one.exponents.length));
  const widths = Array.from({ length: depth }, (_, k) => networks.reduce((n, { biases }) => n + (k === depth - 1 ? biases.at(-1) : biases[Math.min(k, Math.max(biases.length - 2, 0))]).length, 0));
  if (widths.slice(1).reduce((sum, width, k) => sum + width * widths[k], 0) > MAX_WEIGHTS) refuse(`the networks side by side have more than ${MAX_WEIGHTS} weights`);
  const deep = networks.map((given) => {
    const one = given.exponents.length === 1 && depth > 1 ? withHiddenLayer(given, schema, P) : given;
    const more = Array.from({ length: depth - one.exponents.length }), count = more.length > 0 ? one.biases.at(-2).length : 0;
    const between = (list, value) => [...list.slice(0, -1), ...more.map(() => value), list.at(-1)];
    return { exponents: between(one.exponents, 0), weights: between(one.weights, identity(count)), biases: between(one.biases, Array.from({ length: count }, () => 0n)), columns: one.columns };
  });
  const exponents = Array.from({ length: depth }, (_, k) => Math.max(...deep.map((one) => one.exponents[k])));
  const shift = (one, k) => BigInt(exponents[k] - one.exponents[k]);
  const weights = exponents.map((_, k) => {
    let before = 0;
    return deep.flatMap((one) => {
      const start = before, size = k === 0 ? 0 : one.biases[k - 1].length, by = shift(one, k);
      before += size;
      return one.weights[k].map((row) => {
        const own = row.map((w) => w << by);
        return keepRow(k === 0 ? own : [...Array.from({ length: start }, () => 0n), ...own, ...Array.from({ length: widths[k - 1] - start - size }, () => 0n)], budget);
      });
    });
  });
  return {
    exponents, weights,
    biases: exponents.map((_, k) => deep.flatMap((one) => one.biases[k].map((b) => b << shift(one, k)))),
    columns: deep[0].columns.map((part, g) => part.map((_, c) => deep.flatMap((one) => one.columns[g][c].map((w) => w << shift(one, 0))))),
  };
}

// ---------------------------------------------------------------------- causes

const ON_ACTIONS = ["fixed", "only_up", "only_down", "max_delta", "steps"], NOT_OF_ACTIONS = ["only_with", "fewest_changes", "apart"];
const HALF_BELOW = [(1n << 30n) - 1n, 1n << 31n], HALF_ABOVE = [(1n << 28n) + 1n, 1n << 29n], CLEAR = [1n, 10n ** 18n];

/** The equations of features that follow from others, causes first. */
function readCauses(value, schema, budget) {
  const given = listed(value, "the causes"), names = given.map((one) => (one instanceof Map ? one.get("feature") : null));
  const later = new Set(names.filter((name) => schema.positions.has(name)).map((name) => schema.positions.get(name)));
  if (names.length === 0 || later.size < names.length) refuse("the causes are equations of features of the schema, each once");
  const read = (text, what) => decimal(number(text, what));
  const place = (name, choice) => {
    const g = schema.positions.get(name) ?? refuse(`an equation is about an unknown feature, ${short(name)}`);
    return Boolean(schema.features[g].options) === choice ? g : refuse(`an equation takes '${name}' for another kind of feature`);
  };
  const condition = (one) => {
    budget.tick();
    if (one instanceof Map && one.has("options")) {
      const own = entries(one, "a condition", "feature", "options"), g = place(own.feature, true), most = schema.features[g].options.length - 1;
      const options = new Set(listed(own.options, "the options of a condition").map((o) => index(o, "an option", 0, most)));
      return options.size > 0 ? { g, options } : refuse("a condition that no option meets");
    }
    const own = entries(one, "a condition", "feature", "low", "high"), g = place(own.feature, false);
    const [low, high] = [own.low, own.high].map((end) => (end === null ? null : number(end, "an end of a condition")));
    return { g, options: null, low, high };
  };
  const equations = [];
  for (const one of given) {
    const kind = one instanceof Map && one.has("layers") ? "layers" : "cases";
    const own = entries(one, "an equation", "feature", "within", "holding", kind), g = schema.positions.get(own.feature), f = schema.features[g];
    if (f.kind === "categorical") refuse(`'${f.name}' has no order, so nothing can be added to it`);
    const step = f.options ? F.of(1) : f.step ?? null;
    if ((own.within === null) === (step === null)) refuse(`what follows is within a number for a real number without steps alone; that of '${f.name}' is not`);
    const within = step === null ? read(own.within, "how exactly something follows") : null;
    const below = within ?? F.mul(HALF_BELOW, step), above = within ?? F.mul(HALF_ABOVE, step), holding = number(own.holding, "the cost of holding a feature");
    if (below[0] < 0n || holding < 0) refuse(`'${f.name}' follows within less than nothing, or is held for less than nothing`);
    if (kind === "layers") {
      const stack = readStack(own.layers, schema.columns.length, budget);
      if (stack.length < 2 || stack.at(-1).bias.length !== 1) refuse("an equation is a network with hidden layers and one output, or has cases");
      const reads = schema.features.map(({ places }) => places.some((place) => stack[0].weight.some((row) => row[place] !== 0)));
      if (reads.some((does, h) => does && later.has(h))) refuse(`'${f.name}' follows from itself, or from what comes after it`);
      equations.push({ g, below, above, holding: fraction(holding), cases: [], stack });
      later.delete(g);
      continue;
    }
    const cases = listed(own.cases, "the cases of an equation").map((each) => {
      budget.tick();
      const mine = entries(each, "a case of an equation", "when", "numbers", "options", "constant"), when = listed(mine.when, "the conditions of a case").map(condition);
      const numbers = listed(mine.numbers, "the numbers of a case").map((pair) => {
        const [name, a] = listed(pair, "a number of a case", 2);
        return [place(name, false), read(a, "a factor")];
      });
      const options = listed(mine.options, "the options of a case").map((pair) => {
        const [name, values] = listed(pair, "an option of a case", 2), h = place(name, true);
        return [h, listed(values, "the values of options", schema.features[h].options.length).map((v) => { budget.tick(); return read(v, "the value of an option"); })];
      });
      const named = [...numbers, ...options].map(([h]) => h), looked = when.map((c) => c.g);
      if (new Set(named).size < named.length || new Set(looked).size < looked.length) refuse("a case names a feature twice");
      if ([...named, ...looked].some((h) => later.has(h))) refuse(`'${f.name}' follows from itself, or from what comes after it`);
      budget.keep(BITS_OF_OBJECT * (1 + when.length + numbers.length + options.reduce((n, [, values]) => n + values.length, 0)));
      return { when, numbers, options, constant: read(mine.constant, "the constant of a case") };
    });
    equations.push({ g, below, above, holding: fraction(holding), cases });
    later.delete(g);
  }
  return equations;
}

/** The sets of features with causes to act on: binary numbers, whose lowest digit is the first that may be. */
function actionSets({ equations, constraints, schema }) {
  const bad = constraints.find((one) => NOT_OF_ACTIONS.includes(one.get("kind")));
  if (bad) refuse(`'${bad.get("kind")}' cannot be asked of what follows from actions`);
  const fixed = new Set(constraints.filter((one) => one.get("kind") === "fixed").map((one) => schema.positions.get(one.get("feature"))));
  const most = Math.min(equations.length, ...constraints.filter((one) => one.get("kind") === "max_changes").map((one) => Number(one.get("most"))));
  const free = equations.map((one) => one.g).filter((g) => !fixed.has(g));
  if (2 ** free.length > MAX_SETS) refuse(`${free.length} features with causes may be acted on, in more than ${MAX_SETS} ways`);
  const sets = Array.from({ length: 2 ** free.length }, (_, which) => new Set(free.filter((_, k) => (which >> k) & 1)));
  return sets.filter((some) => some.size <= most);
}

const conditionHolds = (one, value) => (one.options ? one.options.has(value) : (one.low === null || value >= one.low) && (one.high === null || value <= one.high));

/** What a row differs from an equation by, in decimals. */
function noiseOf(equation, row) {
  const own = equation.cases.filter((one) => one.when.every((c) => conditionHolds(c, row[c.g])));
  if (own.length !== 1) refuse(`the row is in ${own.length} cases of the equation of feature ${equation.g}, not in one`);
  let total = own[0].constant;
  for (const [g, a] of own[0].numbers) total = F.add(total, F.mul(a, decimal(row[g])));
  for (const [g, values] of own[0].options) total = F.add(total, values[row[g]]);
  return F.lowest(F.sub(decimal(row[equation.g]), total));
}

/** The value of a network of ReLUs at a row, exactly. */
function networkAt(stack, { features, columns }, row, budget) {
  let x = columns.map(() => F.of(0));
  features.forEach((f, g) => f.places.forEach((place, k) => {
    if (!f.options || f.encoding === "code") { x[place] = fraction(row[g]); return; }
    const own = f.encoding === "dummy" ? k + 1 : k;
    x[place] = F.of((f.encoding === "thermometer" ? row[g] >= own : row[g] === own) ? 1 : 0);
  }));
  stack.forEach(({ weight, bias }, k) => {
    const h = k === 0 ? x : x.map((v) => (v[0] > 0n ? v : F.of(0)));
    x = weight.map((own, i) => {
      budget.tick();
      return F.lowest(own.reduce((sum, w, j) => (w === 0 || h[j][0] === 0n ? sum : F.add(sum, F.mul(fraction(w), h[j]))), fraction(bias[i])));
    });
  });
  return x[0];
}

/** A network of two conditions: value - f - noise + below >= 0 and f + noise + above - value >= 0. A neuron beside each hidden layer
    passes on the value less its lower end. */
function conditionNetwork({ g, stack, below, above }, schema, row, P, budget) {
  const f = schema.features[g], start = f.options ? 0 : f.lower;
  const noise = F.lowest(F.sub(fraction(row[g]), networkAt(stack, schema, row, budget)));
  const level = (k) => (!f.options || f.encoding === "code" ? 1 : f.encoding === "thermometer" ? (k === 0 ? 0 : 1) : f.encoding === "dummy" ? k + 1 : k);
  const made = stack.map(({ weight, bias }, k) => {
    const passed = weight[0].map(() => 0);
    if (k === 0) f.places.forEach((place, i) => { passed[place] = level(i); });
    const rows = k === 0 ? [...weight, passed] : [...weight.map((own) => [...own, 0]), [...passed, 1]];
    return { weight: rows, bias: [...bias, k === stack.length - 1 ? start : k === 0 ? -start : 0] };
  });
  const least = F.sub(noise, fraction(nearest(below))), other = F.sub([-noise[0], noise[1]], fraction(nearest(above)));
  return inWholeNumbers(made, { rows: [[[[1, 1n], [0, -1n]], least], [[[0, 1n], [1, -1n]], other]], margin: 0 }, schema, P, budget);
}

/** The ways in which a condition does not hold. */
function deniedLiterals({ features }, one) {
  if (one.options) return [{ numbers: [], options: [[one.g, features[one.g].options.map((_, o) => (one.options.has(o) ? 0n : 1n))]], constant: -1n, whole: true }];
  const found = [], integer = features[one.g].kind === "integer";
  for (const [sign, end] of [[-1n, one.low], [1n, one.high]]) {
    if (end === null) continue;
    const up = sign > 0n ? end : -end, past = nextFloat(up); // as if the number were -x on the lower side
    if (past === up) continue;
    const near = F.cmp(F.sub(decimal(past), decimal(up)), CLEAR) < 0; // as it is near 0, where float64 is finer
    const beyond = near ? F.mul(F.of(F.floor(F.div(decimal(up), CLEAR)) + 1n), CLEAR) : decimal(past);
    const [top, bottom] = F.lowest(integer ? F.of(F.floor(decimal(up)) + 1n) : beyond);
    found.push({ numbers: [[one.g, sign * bottom]], options: [], constant: -top, whole: integer });
  }
  return found;
}

/** sign * (value - equation - noise) + room >= 0, by the least common denominator. */
function sideLiteral({ features }, g, own, noise, sign, room) {
  const times = F.of(-sign), f = features[g];
  const constant = F.lowest(F.add(room, F.mul(times, F.add(own.constant, noise))));
  const numbers = own.numbers.map(([h, a]) => [h, F.lowest(F.mul(times, a))]), options = own.options.map(([h, values]) => [h, values.map((v) => F.lowest(F.mul(times, v)))]);
  if (f.options) options.push([g, f.options.map((_, o) => F.of(sign * BigInt(o)))]);
  else numbers.push([g, F.of(sign)]);
  const over = [constant, ...numbers.map(([, a]) => a), ...options.flatMap(([, values]) => values)].reduce((all, [, bottom]) => (all * bottom) / divisor(all, bottom), 1n);
  const to = ([top, bottom]) => (top * over) / bottom;
  return {
    numbers: numbers.map(([h, a]) => [h, to(a)]), options: options.map(([h, values]) => [h, values.map(to)]), constant: to(constant),
    whole: numbers.every(([h]) => features[h].kind === "integer"),
  };
}

/** The question, once for each alternative of its target, and of these for each set of features with causes to act on. */
function readStatements(question, grid, costGrid, budget, planes) {
  const found = readAlternatives(question, grid, costGrid, budget, planes);
  if (found[0].equations.length === 0) return found;
  const sets = actionSets(found[0]);
  if (found.length * sets.length > MAX_ALTERNATIVES) refuse(`there are more than ${MAX_ALTERNATIVES} alternatives and sets of features to act on, together`);
  return found.flatMap((one) => sets.map((some) => one.actingOn(some)));
}

function readAlternatives(question, grid, costGrid, budget, planes) {
  const target = question instanceof Map ? question.get("target") : null;
  if (!(target instanceof Map) || !target.has("any")) return [new Statement(question, grid, costGrid, budget, planes)];
  const given = listed(entries(target, "the target", "any").any, "the alternatives of the target");
  if (given.length === 0 || given.length > MAX_ALTERNATIVES) refuse(`a target has at most ${MAX_ALTERNATIVES} alternatives, and at least one`);
  const found = given.map((one) => new Statement(question, grid, costGrid, budget, planes, one instanceof Map ? one : refuse("an alternative of the target is no object")));
  found[0].model.margins.forEach((_, k) => {
    if (new Set(found.map((one) => one.model.margins[k]).filter((margin) => margin !== null)).size > 1) refuse("the alternatives of the target have different margins");
  });
  return found;
}

const CLAIMS = ["sufficient", "minimal", "smallest"];

/** The features that a reason holds, and what is claimed of them. */
function readReason(value, schema) {
  const given = entries(value, "the reason", "held", "claim"), names = listed(given.held, "the features that are held");
  if (!names.every((name) => schema.positions.has(name)) || new Set(names).size < names.length) refuse("the features that are held must be features of the schema, each once");
  if (!CLAIMS.includes(given.claim)) refuse(`a reason is claimed to be ${CLAIMS.join(", ")}; not ${short(given.claim)}`);
  return { names, held: names.map((name) => schema.positions.get(name)), claim: given.claim };
}

/** The rows that show that each held feature is needed, or that no smaller set decides alone. */
function checkContrasts(reason, free, value, lower) {
  const rows = listed(value, "the contrasts"), [first] = free, held = new Set(reason.held);
  if (rows.length > MAX_CONTRASTS || (rows.length > 0 && reason.claim === "sufficient")) refuse(`there are more than ${MAX_CONTRASTS} contrasts, or none are needed`);
  const most = lower === null ? null : first.norm === "square" ? F.mul(fraction(lower), fraction(lower)) : fraction(lower);
  const changed = rows.map((row, k) => {
    const point = readPoint(first.schema, row, "a contrast"), why = first.forbids(point);
    if (why) refuse(`contrast ${k} fails: ${why}`);
    if (free.every((one) => one.conditions(point).some((z) => z < 0n))) refuse(`contrast ${k} fails: a condition is missed`);
    if (most !== null && F.cmp(first.cost(point), most) >= 0) refuse(`contrast ${k} fails: it is not nearer than ${lower}`);
    return new Set([...point.keys()].filter((g) => point[g] !== first.factual[g]));
  });
  if (reason.claim === "sufficient") return;
  const alone = new Set(changed.map((one) => [...one].filter((g) => held.has(g))).filter((own) => own.length === 1).map(([g]) => g));
  if (alone.size < held.size) refuse("no contrast shows that each of the held features is needed");
  if (reason.claim === "smallest" && isMet(changed, held.size - 1, first.budget)) refuse("the contrasts leave open that fewer features decide alone");
}

/** Do so many features meet all sets? */
function isMet(sets, most, budget, chosen = new Set(), excluded = new Set()) {
  budget.look();
  const left = sets.filter((one) => ![...one].some((g) => chosen.has(g))).map((one) => [...one].filter((g) => !excluded.has(g)));
  if (left.length === 0) return most >= 0;
  if (chosen.size >= most) return false;
  const tried = new Set(excluded);
  for (const g of left.reduce((a, b) => (b.length < a.length ? b : a))) {
    if (isMet(sets, most, budget, new Set([...chosen, g]), tried)) return true;
    tried.add(g);
  }
  return false;
}

/** The question in whole numbers: points in 2^-P, weights of layer k in 2^-e[k], costs in 2^-K. */
class Statement {
  constructor(question, grid, costGrid, budget, planes, target = null) {
    const causes = question instanceof Map && question.has("causes") ? ["causes"] : [];
    const given = entries(question, "the question", "schema", "model", "factual", "distance", "constraints", "target", ...causes);
    this.budget = budget;
    this.grid = grid;
    this.P = BigInt(grid);
    const schema = (this.schema = readSchema(given.schema));
    this.n = BigInt(schema.features.length);
    this.factual = readPoint(schema, given.factual, "the factual");
    this.model = readModel(given.model, schema, target ?? given.target, this.P, budget, planes);
    ({ forest: this.forest, fingerprint: this.fingerprint } = this.model);
    this.distance = readDistance(given.distance, schema);
    this.norm = this.distance.norm;
    this.K = BigInt(costGrid + (this.norm === "square" ? 2 * grid : grid));
    this.costGrid = BigInt(costGrid);
    this.constraints = listed(given.constraints, "the constraints");
    for (const one of this.constraints) {
      const kind = one instanceof Map ? one.get("kind") : null;
      if (typeof kind !== "string" || !(Object.hasOwn(OF_ONE, kind) || RULES.includes(kind))) refuse(`there is no constraint ${short(kind)}`);
    }
    this.rules = readRules(schema, this.constraints, budget);
    [this.follows, this.acted, this.fee] = [new Set(), null, F.of(0)];
    this.equations = causes.length > 0 ? readCauses(given.causes, schema, budget) : [];
    this.prepare();
  }
  /** What the rules, and what is acted on, make of network, domains and costs. */
  prepare() {
    const { schema, grid } = this;
    const { exponents, weights, biases, columns } = this.model.network;
    Object.assign(this, { exponents, weights: [...weights], biases: [...biases], columns });
    this.addLiterals();
    this.checkLengths();
    const free = new Set([...this.follows].map((g) => schema.features[g].name));
    const own = this.constraints.filter((one) => !(ON_ACTIONS.includes(one.get("kind")) && free.has(one.get("feature"))));
    this.domains = readDomains(schema, this.factual, own, grid, this.budget);
    this.readCosts();
    this.columnsByInput = this.weights.map((rows, k) => (k === 0 || rows.length === 0 ? null : rows[0].map((_, j) => rows.map((row) => row[j]))));
    this.sizes = this.biases.map((bias) => bias.length);
    this.starts = [0];
    for (const size of this.sizes) this.starts.push(this.starts.at(-1) + size);
    this.atFactual = this.firstLayer(this.factual.map((x, g) => (schema.features[g].options ? x : scaled(x, grid, `the factual's '${schema.features[g].name}'`))));
  }
  get layers() { return this.biases.length; }
  /** The question about the row that follows from actions on a set of features with causes. */
  actingOn(acted) {
    const one = Object.assign(Object.create(Statement.prototype), this), caused = new Set(this.equations.map(({ g }) => g));
    one.acted = acted;
    one.follows = new Set([...caused].filter((g) => !acted.has(g)));
    const rules = { ...this.rules, literals: [...this.rules.literals], clauses: [...this.rules.clauses], any: true };
    for (const equation of this.equations) {
      if (acted.has(equation.g) || equation.stack) continue;
      const noise = noiseOf(equation, this.factual);
      for (const own of equation.cases) {
        this.budget.tick();
        const ways = own.when.flatMap((c) => deniedLiterals(this.schema, c));
        for (const [sign, room] of [[1n, equation.below], [-1n, equation.above]]) {
          const clause = [...ways, sideLiteral(this.schema, equation.g, own, noise, sign, room)];
          rules.clauses.push(clause.map((_, i) => rules.literals.length + i));
          rules.literals.push(...clause);
          if (rules.literals.length > MAX_LITERALS) refuse(`there are more than ${MAX_LITERALS} literals`);
        }
      }
    }
    rules.limits = rules.limits.map(([most, counted]) => [most - acted.size, counted.map((c, g) => c && !caused.has(g))]);
    rules.any = rules.clauses.length + rules.limits.length + rules.partners.length > 0;
    one.rules = rules;
    const more = this.equations.filter(({ g, stack }) => stack && !acted.has(g)).map((own) => conditionNetwork(own, this.schema, this.factual, this.P, this.budget));
    if (more.length > 0) {
      const network = sideBySide([this.model.network, ...more], this.schema, this.P, this.budget), { curved } = this.model;
      one.model = { ...this.model, network, curved: curved && network.biases.slice(0, -1).map((_, k) => curvesOf(curved, k)) };
    }
    one.fee = this.feeOf(this.equations.filter(({ g }) => acted.has(g)));
    one.prepare();
    return one;
  }
  /** What acting against causes costs (l2: squared): each counts like a change of this size. */
  feeOf(held) {
    const { weights, jump, rate } = this.distance, fees = held.map(({ g, holding }) => F.mul(weights[g], holding));
    let total = F.of(0);
    for (const fee of fees) {
      if (this.norm === "max") total = F.cmp(fee, total) > 0 ? fee : total;
      else total = F.add(total, this.norm === "square" ? F.mul(fee, fee) : F.mul(F.add(jump, rate), fee));
    }
    return F.div(total, F.of(this.n));
  }
  /** The cost that changes must not stay below, in units of 2^-K; null: there must be no row at all. */
  radiusOf(lower) {
    if (lower === null) return null;
    let cost = this.norm === "square" ? F.mul(fraction(lower), fraction(lower)) : fraction(lower);
    if (this.norm === "max") cost = F.cmp(this.fee, cost) >= 0 ? F.of(0) : cost;
    else cost = F.sub(cost, this.fee);
    return largest(ceil(cost[0] << this.K, cost[1]), 0n);
  }
  /** The same question with these features held. */
  holding(names) {
    const held = names.map((feature) => new Map([["kind", "fixed"], ["feature", feature]])), one = Object.assign(Object.create(Statement.prototype), this);
    one.constraints = [...this.constraints, ...held];
    one.domains = readDomains(this.schema, this.factual, one.constraints, this.grid, this.budget);
    return one;
  }
  /** The same question with a change less than the fewest. */
  withFewer() {
    const one = Object.assign(Object.create(Statement.prototype), this), limits = [...this.rules.limits], at = this.rules.fewest;
    limits[at] = [limits[at][0] - 1, limits[at][1]];
    one.rules = { ...this.rules, limits, fewest: null };
    return one;
  }
  /** Literals are neurons of layer 0 behind the network's own; they lead nowhere. */
  addLiterals() {
    const { literals } = this.rules, { features } = this.schema;
    this.firstLiteral = this.biases[0].length;
    if (literals.length === 0) return;
    if (this.biases.length === 1) Object.assign(this, withHiddenLayer(this, this.schema, this.P));
    const e = BigInt(this.exponents[0]), width = this.columns.reduce((n, part) => n + part.length, 0);
    if (literals.length * width > MAX_WEIGHTS) refuse(`the rules have more than ${MAX_WEIGHTS} numbers`);
    this.budget.keep(BITS_OF_OBJECT / 4 * literals.length * width);
    const none = literals.map(() => 0n);
    this.weights[1] = this.weights[1].map((row) => [...row, ...none]);
    this.biases[0] = [...this.biases[0], ...literals.map((one) => one.constant << (e + this.P))];
    const own = literals.map((one) => new Map([...one.numbers.map(([g, a]) => [g, [a]]), ...one.options]));
    this.columns = this.columns.map((part, g) => part.map((column, c) => { this.budget.tick(); return [...column, ...own.map((mine) => (mine.has(g) ? mine.get(g)[c] << e : 0n))]; }));
    const room = features.map((f) => (f.kind !== "real" ? 0n : largest(F.ceil(F.mul(lastPlace(Math.max(Math.abs(f.lower), Math.abs(f.upper))), [1n << this.P, 2n])), 1n)));
    this.rooms = literals.map((one) => one.numbers.reduce((sum, [g, a]) => sum + abs(a) * room[g], 0n));
    this.literalStarts = literals.map((one) => one.numbers.reduce((sum, [g, a]) => sum + a * scaled(this.factual[g], this.grid, "the factual"), one.constant << this.P));
  }
  checkLengths() {
    const longest = (row) => row.reduce((most, v) => (v === 0n ? most : Math.max(most, bitLength(v))), 0);
    let far = 0;
    for (const f of this.schema.features) if (!f.options) { const end = Math.max(Math.abs(f.lower), Math.abs(f.upper)); if (end > 0) { const [m, e] = parts(end); far = Math.max(far, bitLength(m) + e); } }
    let total = Math.max(...this.columns.map((part) => { this.budget.tick(); return part.reduce((most, one) => Math.max(most, longest(one)), 0); })) + bitLength(this.n) + far + 2 * Math.max(this.grid, FINEST) + 2;
    this.weights.forEach((rows, k) => {
      const wide = bitLength(BigInt(Math.max(rows.length, rows[0]?.length ?? 0)));
      total += Math.max(rows.reduce((most, row) => Math.max(most, longest(row)), 0), longest(this.biases[k]) - this.grid) + Number(SLOPE) + wide + 1;
    });
    if (total > MAX_NUMBER) refuse(`the network leads to numbers of ${total} bits; at most ${MAX_NUMBER} are checked`);
  }
  /** Costs are rounded down: what is proven about smaller costs holds for the true ones. */
  readCosts() {
    const { weights, scales, up, down, jump, rate } = this.distance, square = this.norm === "square";
    const down_ = ([top, bottom], bits) => (top << bits) / (bottom * this.n);
    const slope = (times) => weights.map((w, g) => {
      this.budget.tick();
      const s = F.div(F.mul(F.mul(rate, w), times[g]), scales[g]);
      return down_(square ? F.mul(s, s) : s, this.costGrid);
    });
    this.rateUp = slope(up);
    this.rateDown = slope(down);
    this.jumps = weights.map((w) => down_(F.mul(jump, w), this.K));
    for (const costs of [this.rateUp, this.rateDown, this.jumps]) for (const g of this.follows) costs[g] = 0n;
    this.optionCosts = this.schema.features.map((f, g) => f.options?.map((_, o) => {
      this.budget.tick();
      const part = this.part(g, o);
      return down_(square ? F.mul(part, part) : part, this.K);
    }));
  }
  /** What a feature adds to the distance when it takes a value. */
  part(g, after) {
    const { weights, scales, up, down, jump, rate, transitions } = this.distance, before = this.factual[g], f = this.schema.features[g];
    if (after === before || this.follows.has(g)) return F.of(0);
    const times = after > before ? up[g] : down[g];
    let size;
    if (f.options) {
      const moved = F.of(f.kind === "ordinal" ? Math.abs(after - before) : 1);
      size = transitions.get([g, before, after].join()) ?? F.div(F.mul(times, moved), scales[g]);
    } else size = F.div(F.mul(times, F.abs(F.sub(fraction(after), fraction(before)))), scales[g]);
    return F.mul(weights[g], F.add(jump, F.mul(rate, size)));
  }
  cost(point) {
    let total = F.of(0);
    point.forEach((after, g) => {
      this.budget.look();
      if (after === this.factual[g]) return;
      const part = this.part(g, after);
      if (this.norm === "max") total = F.cmp(part, total) > 0 ? part : total;
      else total = F.add(total, this.norm === "square" ? F.mul(part, part) : part);
    });
    total = F.div(total, F.of(this.n));
    return this.norm !== "max" ? F.add(total, this.fee) : F.cmp(this.fee, total) > 0 ? this.fee : total;
  }
  /** Layer 0 of a point whose numbers are in units of 2^-P. */
  firstLayer(point) {
    const z = [...this.biases[0]];
    point.forEach((value, g) => {
      this.budget.tick();
      const choice = this.schema.features[g].options, column = this.columns[g][choice ? value : 0], times = choice ? 1n << this.P : value;
      if (times !== 0n) for (let i = 0; i < z.length; i++) z[i] += times * column[i];
    });
    return z;
  }
  /** The conditions of a row, exactly, in some unit. */
  conditions(point) {
    const trees = this.forest === null ? [] : this.forest.conditions(point, this.budget);
    if (this.biases.at(-1).length === 0) return trees;
    const { features } = this.schema;
    const finest = point.reduce((most, x, g) => (features[g].options ? most : Math.max(most, fineness(x))), this.grid), more = BigInt(finest - this.grid);
    let z = this.biases[0].map((b) => b << more), bits = BigInt(this.exponents[0] + finest);
    point.forEach((x, g) => {
      this.budget.tick();
      const choice = features[g].options, column = this.columns[g][choice ? x : 0], times = choice ? 1n << BigInt(finest) : scaled(x, finest, "a value");
      if (times !== 0n) z = z.map((v, i) => v + times * column[i]);
    });
    if (this.model.curved) return [...this.leastConditions(z, bits), ...trees];
    for (let k = 1; k < this.layers; k++) {
      const hidden = z.map((v) => (v > 0n ? v : 0n)), shift = bits - this.P;
      z = this.weights[k].map((row, i) => this.product(row, hidden) + (this.biases[k][i] << shift));
      bits += BigInt(this.exponents[k]);
    }
    const curved = this.model.curves.map(([first, count]) => (hasProbability(z.slice(first, first + count).map((v) => [v, 1n << bits])) ? 0n : -1n));
    return [...z, ...curved, ...trees];
  }
  /** Numbers that the conditions of a smooth network are at least, from layer 0 in units of 2^-bits. */
  leastConditions(z, bits) {
    const shift = EXP_BITS - this.P;
    let ends = z.map((v) => [v, v]);
    for (let k = 1; k < this.layers; k++) {
      const hidden = ends.map(([low, high], j) => {
        const curve = this.model.curved[k - 1].get(j);
        if (curve) { this.budget.tick(); return activationRange(curve, low, high, bits); }
        return [(largest(low, 0n) << EXP_BITS) >> bits, -((-largest(high, 0n) << EXP_BITS) >> bits)];
      });
      ends = this.weights[k].map((row, i) => {
        const bias = this.biases[k][i];
        let low = shift >= 0n ? bias << shift : bias >> -shift, high = shift >= 0n ? low : -(-bias >> -shift);
        row.forEach((w, j) => {
          if ((j & 15) === 0) this.budget.tick();
          low += w * hidden[j][w > 0n ? 0 : 1];
          high += w * hidden[j][w > 0n ? 1 : 0];
        });
        return [low, high];
      });
      bits = EXP_BITS + BigInt(this.exponents[k]);
    }
    const found = ends.map(([low]) => low);
    return [...found, ...this.model.curves.map(([first, count]) => (hasProbability(found.slice(first, first + count).map((v) => [v, 1n << bits])) ? 0n : -1n))];
  }
  product(a, b) {
    let sum = 0n;
    for (let i = 0; i < a.length; i++) {
      if ((i & 15) === 0) this.budget.tick();
      if (a[i] !== 0n && b[i] !== 0n) sum += a[i] * b[i];
    }
    return sum;
  }
  /** Why a row is not allowed. */
  forbids(point) {
    const moved = point.map((x, g) => x !== this.factual[g]), { rules, schema } = this;
    for (let g = 0; g < point.length; g++) {
      const f = schema.features[g], domain = this.domains[g];
      if (f.options) { if (!domain.options.includes(point[g])) return `'${f.name}' may not become option ${point[g]}`; continue; }
      const change = F.mul(F.sub(fraction(point[g]), fraction(this.factual[g])), [1n << this.P, 1n]);
      let good = F.cmp(change, F.of(domain.low)) >= 0 && F.cmp(change, F.of(domain.high)) <= 0;
      if (good && change[0] !== 0n && (domain.step || domain.steps)) {
        const at = F.floor(change), [low, high] = domain.inward(at, at);
        good = F.isWhole(change) && low === at && high === at;
      }
      if (!good) return `'${f.name}' may not become ${point[g]}`;
    }
    const clause = rules.clauses.findIndex((some) => !some.some((i) => holds(rules.literals[i], point)));
    if (clause >= 0) return `clause ${clause} does not hold`;
    for (const [most, counted] of rules.limits) if (moved.filter((m, g) => m && counted[g]).length > most) return `more than ${most} features change`;
    for (const [g, partner] of rules.partners) if (moved[g] && !moved[partner]) return `'${schema.features[g].name}' changes without '${schema.features[partner].name}'`;
    return "";
  }
}

// ---------------------------------------------------------------------- trees

const MAX_TREES = 100_000, MAX_TREE_NODES = 1_000_000, MAX_TREE_DEPTH = 2_000, EVERY = -1;

/** Trees as lists of leaves; score = (start + sum of leaves) / divisor * scale + shift. Conditions are times the divisor, in 2^-bits. */
class Forest {
  constructor(model, schema, targetOf, budget) {
    const given = entries(model, "the model", "kind", "start", "shift", "divisor", "scale", "trees");
    const [start, shift] = ["start", "shift"].map((key) => listed(given[key], `the model's ${key}`).map((v) => number(v, `a ${key}`)));
    let [divisor, scale] = ["divisor", "scale"].map((key) => fraction(number(given[key], `the model's ${key}`)));
    const outputs = start.length;
    if (outputs === 0 || shift.length !== outputs || divisor[0] === 0n || scale[0] === 0n) refuse("the trees have one start and one shift per output, and neither divide nor multiply by 0");
    const { rows, margin } = targetOf(outputs);
    if (divisor[0] < 0n) [divisor, scale] = [[-divisor[0], divisor[1]], [-scale[0], scale[1]]];
    const constants = rows.map(([c, d]) => c.reduce(
      (sum, [j, times]) => F.add(sum, F.mul(F.of(times), F.add(F.mul(fraction(start[j]), scale), F.mul(fraction(shift[j]), divisor)))),
      F.mul([-1n, 1n], F.mul(F.add(exactly(d), fraction(margin)), divisor))));
    const trees = listed(given.trees, "the trees");
    if (trees.length > MAX_TREES) refuse(`there are more than ${MAX_TREES} trees`);
    let count = 0;
    const made = trees.map((tree) => {
      const own = entries(tree, "a tree", "adds_to", "nodes"), target = index(own.adds_to, "the output of a tree", EVERY, outputs - 1);
      count += listed(own.nodes, "the nodes of a tree").length;
      if (count > MAX_TREE_NODES) refuse(`the trees have more than ${MAX_TREE_NODES} nodes`);
      return readTree(own.nodes, schema, target === EVERY ? outputs : 1, budget).map((leaf) => {
        const adds = rows.map(([c]) => F.mul(scale, c.reduce(
          (sum, [j, times]) => (target === EVERY || target === j ? F.add(sum, F.mul(F.of(times), fraction(leaf.values[target === EVERY ? j : 0]))) : sum), F.of(0))));
        return { ...leaf, adds };
      });
    });
    let bits = 0;
    const fine = ([, bottom]) => { bits = Math.max(bits, bitLength(bottom) - 1); };
    constants.forEach(fine);
    for (const tree of made) for (const leaf of tree) { budget.tick(); leaf.adds.forEach(fine); }
    const inUnits = ([top, bottom]) => (top << BigInt(bits)) / bottom;
    this.constants = constants.map(inUnits);
    this.units = constants.map(() => F.mul([1n << BigInt(bits), 1n], divisor)); // what a condition's value has to be divided by
    this.curves = [];
    this.trees = made.map((tree) => {
      budget.keep(BITS_OF_OBJECT * 2 * tree.length);
      for (const leaf of tree) { leaf.adds = leaf.adds.map(inUnits); budget.keep(leaf.adds.reduce((sum, v) => sum + bitLength(v), 0)); }
      return tree;
    });
  }
  /** Several ensembles as one: each tree adds to the conditions of its own. */
  static together(forests, budget) {
    const whole = Object.assign(Object.create(Forest.prototype), { curves: [], units: [] }), count = forests.reduce((n, one) => n + one.constants.length, 0);
    whole.constants = forests.flatMap((one) => one.constants);
    let before = 0;
    whole.trees = forests.flatMap((one) => {
      const start = before;
      before += one.constants.length;
      budget.keep(BITS_OF_OBJECT / 4 * count * one.trees.reduce((n, tree) => n + tree.length, 0));
      whole.curves.push(...one.curves.map(([first, n]) => [start + first, n]));
      whole.units.push(...one.units);
      return one.trees.map((tree) => tree.map((leaf) => ({ ...leaf, adds: Array.from({ length: count }, (_, r) => leaf.adds[r - start] ?? 0n) })));
    });
    return whole;
  }
  conditions(point, budget) {
    const total = [...this.constants];
    for (const tree of this.trees) {
      budget.tick();
      const leaf = tree.find(({ above, below, options }) => [...above].every(([g, t]) => point[g] > t) && [...below].every(([g, t]) => point[g] <= t)
        && [...options].every(([g, own]) => own.has(point[g])));
      leaf.adds.forEach((v, r) => { total[r] += v; });
    }
    for (const [first, count] of this.curves) total.push(hasProbability(total.slice(first, first + count).map((v, k) => F.div(F.of(v), this.units[first + k]))) ? 0n : -1n);
    return total;
  }
  /** Is a condition out of reach in a region, or a whole tree? */
  closes(region) {
    const total = [...this.constants];
    for (const tree of this.trees) {
      const best = total.map(() => null);
      for (const leaf of tree) {
        region.statement.budget.tick();
        if (leaf.adds.every((v, r) => best[r] !== null && v <= best[r]) || !region.meets(leaf)) continue;
        leaf.adds.forEach((v, r) => { if (best[r] === null || v > best[r]) best[r] = v; });
      }
      if (best.some((v) => v === null)) return true;
      best.forEach((v, r) => { total[r] += v; });
    }
    return total.some((v) => v < 0n);
  }
}

/** The leaves of a tree in preorder: thresholds that a number is above and not above, options, values. */
function readTree(nodes, schema, width, budget) {
  const leaves = [], waiting = [{ above: new Map(), below: new Map(), options: new Map(), place: 0 }];
  nodes.forEach((given, place) => {
    budget.tick();
    const node = listed(given, "a node of a tree"), way = waiting.pop();
    if (way === undefined || way.place !== place) refuse("the nodes of a tree are not in preorder");
    const { above, below, options } = way;
    if (typeof node[0] === "string") {
      if (node.length !== width) refuse(`a leaf has ${width} values`);
      leaves.push({ above, below, options, values: node.map((v) => number(v, "the value of a leaf")) });
      return;
    }
    if (node.length !== 3 || waiting.length > MAX_TREE_DEPTH) refuse("a node of a tree is neither a split nor a leaf, or it is too deep");
    const g = index(node[0], "the feature of a split", 0, schema.features.length - 1), right = index(node[2], "the place of a right child", place + 2, nodes.length - 1), feature = schema.features[g];
    budget.keep(BITS_OF_OBJECT * (above.size + below.size + options.size + 4));
    const with_ = (map, value) => new Map(map).set(g, value);
    let left, other;
    if (feature.options) {
      const goes = new Set(listed(node[1], "the options of a split").map((o) => index(o, "an option of a split", 0, feature.options.length - 1)));
      const had = [...(options.get(g) ?? feature.options.keys())];
      budget.keep(BITS_OF_OBJECT * had.length);
      left = { above, below, options: with_(options, new Set(had.filter((o) => goes.has(o)))) };
      other = { above, below, options: with_(options, new Set(had.filter((o) => !goes.has(o)))) };
    } else {
      const t = number(node[1], `a threshold of '${feature.name}'`);
      left = { above, below: with_(below, Math.min(t, below.get(g) ?? t)), options };
      other = { above: with_(above, Math.max(t, above.get(g) ?? t)), below, options };
    }
    waiting.push({ ...other, place: right }, { ...left, place: place + 1 });
  });
  if (waiting.length > 0) refuse("a tree is cut off");
  return leaves;
}

/** The change to a threshold in units of 2^-P, rounded down. */
const floorChange = (statement, g, t) => F.floor(F.mul(F.sub(fraction(t), fraction(statement.factual[g])), [1n << statement.P, 1n]));

/** The least change to a value above a threshold, rounded down: to the next step, or to the next float64. */
function changeBeyond(statement, g, t) {
  const domain = statement.domains[g];
  return domain.coarse ? domain.parted(floorChange(statement, g, t))[1] : floorChange(statement, g, nextFloat(t));
}

function nextFloat(x) {
  if (x === 0) return Number.MIN_VALUE;
  buffer.setFloat64(0, x);
  buffer.setBigInt64(0, buffer.getBigInt64(0) + (x > 0 ? 1n : -1n));
  const next = buffer.getFloat64(0);
  return Number.isFinite(next) ? next : x;
}

// ---------------------------------------------------------------------- regions

/** What the splits on the way leave. */
function extentOf(statement, box) {
  const cuts = [];
  for (let at = box; at.before !== null; at = at.before) { statement.budget.tick(); cuts.push(at.cut); }
  const low = statement.domains.map((d) => d.low), high = statement.domains.map((d) => d.high), options = statement.domains.map((d) => d.options);
  const sides = new Map(), changed = new Set(), above = new Map(), below = new Map(), shown = new Map();
  for (const [kind, place, value] of cuts.reverse()) {
    statement.budget.tick();
    if (kind === "high") high[place] = least(high[place], value);
    else if (kind === "low") low[place] = largest(low[place], value);
    else if (kind === "alone") options[place] = options[place].filter((o) => o === value);
    else if (kind === "others") options[place] = options[place].filter((o) => o !== value);
    else if (kind === "kept") {
      low[place] = largest(low[place], 0n);
      high[place] = least(high[place], 0n);
      if (options[place]) options[place] = options[place].filter((o) => o === statement.factual[place]);
    } else if (kind === "changed") changed.add(place);
    else if (kind === "below") {
      high[place] = least(high[place], value[1]);
      below.set(place, Math.min(value[0], below.get(place) ?? value[0]));
    } else if (kind === "above") {
      low[place] = largest(low[place], value[1]);
      above.set(place, Math.max(value[0], above.get(place) ?? value[0]));
      if (value[0] >= statement.factual[place]) changed.add(place);
    } else if (kind === "most" || kind === "least") {
      const key = `${place},${value[0]}`, [low, high] = shown.get(key) ?? [null, null];
      shown.set(key, kind === "most" ? [low, high === null ? value[1] : least(high, value[1])] : [low === null ? value[1] : largest(low, value[1]), high]);
    }
    else sides.set(`${place},${value}`, kind === "active" ? 1 : -1);
  }
  return { low, high, options, sides, changed, above, below, shown };
}

/** Bounds of a pre-activation, given some: with those shown on the way, and on its side. */
function boundsIn(extent, layer, i, [low, high]) {
  const key = `${layer},${i}`, side = extent.sides.get(key) ?? 0, [from, to] = extent.shown.get(key) ?? [null, null];
  if (from !== null) low = largest(low, from);
  if (to !== null) high = least(high, to);
  return [side === 1 ? largest(low, 0n) : low, side === -1 ? least(high, 0n) : high];
}

/** Step 0: narrows an extent to what the rules leave; false where that is nothing. */
class Narrowing {
  constructor(statement, extent) { Object.assign(this, { statement, extent, moved: false }); }
  run() {
    if (!this.statement.rules.any) return true;
    for (let round = 0; round < ROUNDS; round++) {
      this.statement.budget.look();
      this.moved = false;
      if (!this.support() || !this.clauses()) return false;
      if (!this.moved) break;
    }
    return true;
  }
  must(g) {
    const { extent, statement } = this;
    if (extent.changed.has(g)) return true;
    return extent.options[g] ? !extent.options[g].includes(statement.factual[g]) : extent.low[g] > 0n || extent.high[g] < 0n;
  }
  cannot(g) {
    const { options, low, high } = this.extent;
    return options[g] ? options[g].length === 1 && options[g][0] === this.statement.factual[g] : low[g] === 0n && high[g] === 0n;
  }
  keepValue(g) {
    if (this.must(g)) return false;
    if (!this.cannot(g)) {
      this.moved = true;
      if (this.extent.options[g]) this.extent.options[g] = [this.statement.factual[g]];
      else this.extent.low[g] = this.extent.high[g] = 0n;
    }
    return true;
  }
  support() {
    const { rules, factual } = this.statement, { changed } = this.extent, all = [...factual.keys()];
    for (const [g, partner] of rules.partners) {
      if (this.cannot(partner) && !this.keepValue(g)) return false;
      if (this.must(g) && !changed.has(partner)) { changed.add(partner); this.moved = true; }
    }
    for (const [most, counted] of rules.limits) {
      const sure = new Set(all.filter((g) => counted[g] && this.must(g)));
      if (sure.size > most) return false;
      if (sure.size === most && !all.every((g) => !counted[g] || sure.has(g) || this.keepValue(g))) return false;
    }
    return [...changed].every((g) => this.leave(g));
  }
  leave(g) {
    const { extent, statement } = this, domain = statement.domains[g];
    if (extent.options[g]) {
      const rest = extent.options[g].filter((o) => o !== statement.factual[g]);
      this.moved ||= rest.length < extent.options[g].length;
      extent.options[g] = rest;
      return rest.length > 0;
    }
    let low = extent.low[g], high = extent.high[g];
    if (low === 0n && high === 0n) return false;
    if (domain.step || domain.steps) {
      if (low === 0n) low = domain.inward(1n, largest(high, 1n))[0];
      if (high === 0n) high = domain.inward(least(low, -1n), -1n)[1];
    }
    this.moved ||= low !== extent.low[g] || high !== extent.high[g];
    extent.low[g] = low;
    extent.high[g] = high;
    return low <= high;
  }
  clauses() {
    const { statement, extent } = this, first = statement.firstLiteral;
    for (const clause of statement.rules.clauses) {
      statement.budget.tick();
      const possible = clause.filter((i) => extent.sides.get(`0,${first + i}`) !== -1 && this.most(i, 1n).total >= 0n);
      if (possible.length === 0) return false;
      const only = `0,${first + possible[0]}`;
      if (possible.length === 1 && !extent.sides.has(only)) { extent.sides.set(only, 1); this.moved = true; }
    }
    for (const [key, side] of [...extent.sides]) {
      const [layer, neuron] = key.split(",").map(Number);
      if (layer === 0 && neuron >= first && !this.cut(neuron - first, side === 1 ? 1n : -1n)) return false;
    }
    return true;
  }
  /** The largest value of a literal (sign 1) or of its denial (-1), and the parts of its features. */
  most(i, sign) {
    const { statement, extent } = this, literal = statement.rules.literals[i];
    let total = sign * statement.literalStarts[i] + statement.rooms[i] - (sign < 0n && literal.whole ? 1n << statement.P : 0n);
    const numbers = literal.numbers.map(([g, a]) => largest(sign * a * extent.low[g], sign * a * extent.high[g]));
    const options = literal.options.map(([g, values]) => extent.options[g].map((o) => (sign * values[o]) << statement.P));
    if (options.some((some) => some.length === 0)) return { total: -1n, numbers, options };
    for (const own of numbers) total += own;
    for (const some of options) total += some.reduce(largest);
    return { total, numbers, options };
  }
  cut(i, sign) {
    const { statement, extent } = this, literal = statement.rules.literals[i], { total, numbers, options } = this.most(i, sign);
    if (total < 0n) return false;
    for (const [k, [g, a]] of literal.numbers.entries()) {
      const rest = total - numbers[k], slope = sign * a;
      let low = extent.low[g], high = extent.high[g];
      if (slope > 0n && slope * low + rest < 0n) low = -floor(rest, slope);
      else if (slope < 0n && slope * high + rest < 0n) high = floor(rest, -slope);
      else continue;
      [extent.low[g], extent.high[g]] = [low, high] = statement.domains[g].inward(low, high);
      this.moved = true;
      if (low > high) return false;
    }
    for (const [k, [g]] of literal.options.entries()) {
      const rest = total - options[k].reduce(largest), kept = extent.options[g].filter((_, j) => options[k][j] + rest >= 0n);
      if (kept.length < extent.options[g].length) { extent.options[g] = kept; this.moved = true; }
    }
    return true;
  }
}

/** A box cut with the ball of cost R (null: no ball). `empty`: nothing is left in it. */
class Region {
  constructor(statement, box, radius, known = null, hidden = true) {
    Object.assign(this, { statement, radius, budget: null, items: [], columns: [], corner: [], cornerCosts: [], bounds: [], chords: [] });
    this.extent = extentOf(statement, box);
    this.empty = !new Narrowing(statement, this.extent).run() || !this.clip() || (hidden && !this.boundHidden(known));
  }
  // ------------------------------------------------------------------ steps 1 and 2: corner and ball
  clip() {
    const { statement, extent } = this, { features } = statement.schema;
    let spent = 0n;
    for (let g = 0; g < features.length; g++) {
      statement.budget.tick();
      let cost;
      if (features[g].options) {
        const options = extent.options[g], price = statement.optionCosts[g];
        if (options.length === 0) return false;
        this.corner.push(options.reduce((best, o) => (price[o] < price[best] ? o : best)));
        cost = price[this.corner[g]];
      } else {
        if (extent.low[g] > extent.high[g]) return false;
        const at = largest(extent.low[g], least(extent.high[g], 0n));
        this.corner.push(at);
        cost = this.numberCost(g, at);
      }
      this.cornerCosts.push(cost);
      spent = statement.norm === "max" ? largest(spent, cost) : spent + cost;
    }
    if (this.radius !== null) {
      if (spent >= this.radius) return false;
      this.budget = this.radius - spent;
    }
    const z = [...statement.atFactual];
    for (let g = 0; g < features.length; g++) {
      statement.budget.tick();
      const columns = statement.columns[g], at = this.corner[g];
      if (features[g].options) {
        const now = columns[at], before = columns[statement.factual[g]];
        if (now !== before) for (let i = 0; i < z.length; i++) z[i] += (now[i] - before[i]) << statement.P;
        this.addChoice(g);
      } else {
        if (at !== 0n) for (let i = 0; i < z.length; i++) z[i] += at * columns[0][i];
        this.addNumber(g);
      }
    }
    this.first = z;
    return true;
  }
  numberCost(g, change) {
    const { statement } = this, rate = change > 0n ? statement.rateUp[g] : statement.rateDown[g];
    if (statement.norm === "square") return rate * change * change;
    return rate * abs(change) + (change !== 0n || this.extent.changed.has(g) ? statement.jumps[g] : 0n);
  }
  /** Can a row of the region be in a leaf of a tree? Its cheapest value of each feature must stay below R. */
  meets(leaf) {
    const { statement, extent } = this;
    let extra = 0n;
    const pay = (g, cost) => { extra = statement.norm === "max" ? largest(extra, cost) : extra + cost - this.cornerCosts[g]; };
    for (const [g, own] of leaf.options) {
      const left = extent.options[g].filter((o) => own.has(o));
      if (left.length === 0) return false;
      pay(g, left.map((o) => statement.optionCosts[g][o]).reduce(least));
    }
    for (const g of new Set([...leaf.above.keys(), ...leaf.below.keys()])) {
      const domain = statement.domains[g], t = leaf.above.get(g), s = leaf.below.get(g);
      let low = extent.low[g], high = extent.high[g];
      if (t !== undefined) {
        const at = floorChange(statement, g, t);
        if (at >= high || (s !== undefined && t >= s) || (extent.below.has(g) && t >= extent.below.get(g))) return false;
        low = largest(low, changeBeyond(statement, g, t));
      }
      if (s !== undefined) {
        const at = floorChange(statement, g, s);
        if (at < low || (extent.above.has(g) && s <= extent.above.get(g))) return false;
        high = least(high, domain.coarse ? domain.parted(at)[0] : at + 1n);
      }
      if (low > high) return false;
      if (low > 0n || high < 0n) pay(g, this.numberCost(g, low > 0n ? low : high));
      else if (t !== undefined && t >= statement.factual[g]) pay(g, statement.jumps[g]); // however little, it is a change
    }
    if (this.radius === null) return true;
    return statement.norm === "max" ? extra < this.radius : extra < this.budget;
  }
  addNumber(g) {
    const { statement, extent } = this, at = this.corner[g];
    const rateUp = at < 0n ? statement.rateDown[g] : statement.rateUp[g], rateDown = at > 0n ? statement.rateUp[g] : statement.rateDown[g];
    const up = this.reach(g, abs(at), rateUp), down = this.reach(g, abs(at), rateDown);
    let high = up === null ? extent.high[g] : least(extent.high[g], at + up), low = down === null ? extent.low[g] : largest(extent.low[g], at - down);
    [low, high] = statement.domains[g].inward(low, high);
    if (low < high) {
      const jump = at !== 0n || extent.changed.has(g) ? 0n : statement.jumps[g];
      this.items.push({ first: this.columns.length, up: high - at, down: at - low, rateUp, rateDown, jump, moved: abs(at), costs: null });
      this.columns.push(statement.columns[g][0]);
    }
  }
  reach(g, moved, rate) {
    if (this.budget === null || rate === 0n) return this.budget !== null && this.statement.norm === "sum" && this.budget < this.jumpAt(g, moved) ? 0n : null;
    if (this.statement.norm === "square") return squareRoot(this.budget / rate + moved * moved) + 1n - moved;
    if (this.statement.norm === "max") return largest(this.radius / rate + 1n - moved, 0n);
    const left = this.budget - this.jumpAt(g, moved);
    return left < 0n ? 0n : left / rate + 1n;
  }
  jumpAt(g, moved) { return moved !== 0n || this.extent.changed.has(g) ? 0n : this.statement.jumps[g]; }
  addChoice(g) {
    const { statement, extent } = this, at = this.corner[g], price = statement.optionCosts[g], own = statement.columns[g], costs = [];
    const max = statement.norm === "max", most = max ? this.radius : this.budget, first = this.columns.length;
    for (const option of extent.options[g]) {
      const beyond = price[option] - (max ? 0n : price[at]);
      if (option === at || (most !== null && beyond > most)) continue;
      statement.budget.tick();
      costs.push(beyond);
      this.columns.push(own[option].map((v, i) => v - own[at][i]));
    }
    if (costs.length > 0) this.items.push({ first, costs });
  }
  // ------------------------------------------------------------------ step 3: hidden bounds
  boundHidden(known) {
    const { statement, extent } = this;
    for (let layer = 0; layer < statement.layers - 1; layer++) {
      const bounds = [];
      for (let i = 0; i < statement.sizes[layer]; i++) {
        let [low, high] = known !== null ? known[layer][i] : layer > 0 ? this.interval(layer, i) : [-this.highest(0, i, -1n), this.highest(0, i, 1n)];
        const side = extent.sides.get(`${layer},${i}`) ?? 0;
        [low, high] = boundsIn(extent, layer, i, [low, high]);
        const curved = this.curveOf(layer, i) !== undefined;
        if (known !== null && layer > 0 && (curved || (low < 0n && high > 0n))) {
          const [from, to] = this.interval(layer, i);
          [low, high] = [largest(low, from), least(high, to)];
        }
        const open = (known !== null || layer > 0) && (curved || (low < 0n && high > 0n));
        if (side === 1 || open) high = least(high, this.highest(layer, i, 1n));
        if (side === -1 || open) low = largest(low, -this.highest(layer, i, -1n));
        if (low > high) return false;
        bounds.push([low, high]);
      }
      if (known === null) statement.budget.keep(4 * bounds.reduce((bits, [low, high]) => bits + bitLength(low) + bitLength(high), 0));
      this.bounds.push(bounds);
      this.chords.push(bounds.map(([low, high], i) => {
        if (this.curveOf(layer, i)) return this.linesOf(this.curveOf(layer, i), low, high);
        if (low >= 0n) return { above: ONE, shift: 0n, below: ONE, stable: true };
        if (high <= 0n) return { above: 0n, shift: 0n, below: 0n, stable: true };
        const above = (high << SLOPE) / (high - low);
        return { above, shift: largest(-above * low, high * (ONE - above)), below: high > -low ? ONE : 0n, stable: false };
      }));
    }
    return true;
  }
  curveOf(layer, i) { return this.statement.model.curved?.[layer].get(i); }
  /** The lines around an activation (the logistic function: the one below by s(z) = 1 - s(-z)), and its values, in units
   * of 2^-P. */
  linesOf(curve, low, high) {
    const { P, budget } = this.statement;
    budget.tick();
    const [from, to] = activationRange(curve, low, high, P), values = [(from << P) >> EXP_BITS, -((-to << P) >> EXP_BITS)];
    if (curve.name === "identity") return { above: ONE, shift: 0n, below: ONE, lift: 0n, stable: true, values };
    if (curve.name === "sigmoid") {
      const [above, shift] = lineAbove(low, high, P), [below, mirrored] = lineAbove(-high, -low, P);
      return { above, shift, below, lift: (1n << (P + SLOPE)) - mirrored, stable: true, values };
    }
    const [above, shift] = lineOver(curve, 1n, low, high, P), [below, lift] = lineOver(curve, -1n, low, high, P);
    return { above, shift, below: -below, lift: -lift, stable: true, values };
  }
  interval(layer, i) {
    const { statement } = this, below = this.bounds[layer - 1], row = statement.weights[layer][i], e = BigInt(statement.exponents[layer]);
    let low = statement.biases[layer][i], high = low;
    for (let j = 0; j < row.length; j++) {
      if ((j & 15) === 0) statement.budget.tick();
      const w = row[j], { values } = this.chords[layer - 1][j];
      if (w === 0n || (!values && below[j][1] <= 0n)) continue;
      const [from, to] = values ?? [largest(below[j][0], 0n), below[j][1]];
      low += w * (w > 0n ? from : to);
      high += w * (w > 0n ? to : from);
    }
    return [low >> e, -(-high >> e)];
  }
  highest(layer, i, sign) {
    this.statement.budget.tick();
    const plane = this.plane(layer, i, sign, null);
    return -(-this.most(plane) >> BigInt(plane.unit));
  }
  /** The plane above sign * pre-activation, by backward substitution: a, constant, and the unit of a. */
  plane(layer, i, sign, slopes) {
    const { statement } = this;
    let unit = statement.exponents[layer];
    if (layer === 0) {
      const literal = i - statement.firstLiteral, room = literal >= 0 ? statement.rooms[literal] << BigInt(unit) : 0n;
      return { a: this.columns.map((column) => sign * column[i]), constant: sign * this.first[i] + room, unit };
    }
    let v = statement.weights[layer][i].map((w) => sign * w), constant = sign * statement.biases[layer][i];
    while (layer > 0) {
      layer--;
      const e = BigInt(statement.exponents[layer]), start = BigInt(statement.starts[layer]);
      constant <<= SLOPE;
      for (let j = 0; j < v.length; j++) {
        if ((j & 15) === 0) statement.budget.tick();
        if (v[j] === 0n) continue;
        const chord = this.chords[layer][j];
        if (v[j] > 0n) { constant += v[j] * chord.shift; v[j] *= chord.above; }
        else if (chord.stable || slopes === null) { if (chord.lift) constant += v[j] * chord.lift; v[j] *= chord.below; }
        else v[j] *= (slopes >> (start + BigInt(j))) & 1n ? ONE : 0n;
      }
      constant = (constant << e) + statement.product(v, layer === 0 ? this.first : statement.biases[layer]);
      unit += Number(SLOPE) + statement.exponents[layer];
      v = (layer === 0 ? this.columns : statement.columnsByInput[layer]).map((column) => statement.product(v, column));
    }
    return { a: v, constant, unit };
  }
  // ------------------------------------------------------------------ step 5: the most that a plane reaches
  most({ a, constant, unit }) {
    const { statement } = this, gains = [];
    for (const item of this.items) {
      statement.budget.tick();
      if (item.costs) {
        gains.push(...hull(item.costs.map((cost, j) => [cost, a[item.first + j] << statement.P]), statement.budget));
        continue;
      }
      const v = a[item.first], reach = v > 0n ? item.up : item.down;
      if (v !== 0n && reach !== 0n) gains.push([item.jump + (v > 0n ? item.rateUp : item.rateDown) * reach, abs(v) * reach]);
    }
    let total = constant;
    for (const [, gain] of gains) total += gain;
    if (this.budget === null || statement.norm === "max" || total < 0n) return total;
    if (statement.norm === "sum") return this.bought(constant, gains);
    return least(total, this.mostSquared(a, constant, unit));
  }
  /** The best gains per cost first, until the budget is spent; the last one in part, rounded up. */
  bought(constant, gains) {
    let left = this.budget;
    gains.sort((a, b) => { this.statement.budget.tick(); const d = b[1] * a[0] - a[1] * b[0]; return d > 0n ? 1 : d < 0n ? -1 : 0; });
    for (const [cost, gain] of gains) {
      if (cost > left) return constant + ceil(gain * left, cost);
      constant += gain;
      left -= cost;
    }
    return constant;
  }
  mostSquared(a, constant, unit) {
    const { statement } = this, price = this.price(a, unit);
    let [m, e] = price > 0 && Number.isFinite(price) ? parts(price) : [0n, 0], shift = BigInt(-e) - (BigInt(unit) + statement.P - statement.K);
    if (m === 0n) shift = 0n;
    if (shift < 0n) { m <<= -shift; shift = 0n; }
    let total = (constant << shift) + m * this.budget;
    for (const item of this.items) total += this.itemMost(item, a, m, shift);
    return -(-total >> shift);
  }
  /** The largest gain 2^shift - m cost of a feature, rounded up. */
  itemMost(item, a, m, shift) {
    this.statement.budget.tick();
    if (item.costs) return item.costs.reduce((most, cost, j) => largest(most, (a[item.first + j] << (this.statement.P + shift)) - m * cost), 0n);
    const v = a[item.first], reach = v > 0n ? item.up : item.down, cost = m * (v > 0n ? item.rateUp : item.rateDown);
    const rise = (abs(v) << shift) - 2n * cost * item.moved;
    if (rise <= 0n) return 0n;
    if (rise >= 2n * cost * reach) return rise * reach - cost * reach * reach;
    return ceil(rise * rise, 4n * cost);
  }
  /** The price at which the budget is spent, in floating point, by bisection: any price gives a bound that holds. */
  price(a, unit) {
    const { statement } = this, K = Number(statement.K), P = statement.grid, numbers = [], choices = [];
    for (const item of this.items) {
      if (item.costs) choices.push(item.costs.map((cost, j) => [approximate(cost, K), approximate(a[item.first + j], unit)]).filter(([, gain]) => gain > 0));
      else {
        const v = a[item.first], rate = v > 0n ? item.rateUp : item.rateDown;
        if (v !== 0n && rate !== 0n) numbers.push([approximate(abs(v), unit), approximate(rate, K - 2 * P), approximate(item.moved, P), approximate(v > 0n ? item.up : item.down, P)]);
      }
    }
    const budget = approximate(this.budget, K);
    const spent = (price) => {
      let sum = 0;
      for (const [v, r, b, reach] of numbers) {
        const y = Math.min(v / (2 * price * r) - b, reach);
        if (y > 0) sum += r * y * (y + 2 * b);
      }
      for (const options of choices) {
        let best = 0, cost = 0;
        for (const [c, gain] of options) if (gain - price * c > best) { best = gain - price * c; cost = c; }
        sum += cost;
      }
      return sum;
    };
    let high = 0, low = 0;
    for (const [v, r] of numbers) high += (v * v) / r;
    high = Math.sqrt(high / budget);
    for (const options of choices) for (const [cost, gain] of options) if (cost > 0) high = Math.max(high, 2 * gain / cost);
    if (!(high > 0) || !Number.isFinite(high) || spent(Number.MIN_VALUE) <= budget) return 0;
    for (let step = 0; step < 200 && high - low > 1e-15 * high; step++) {
      statement.budget.tick();
      const middle = low > 0 && high > 4 * low ? Math.sqrt(low * high) : (low + high) / 2;
      if (!(middle > low && middle < high)) break;
      if (spent(middle) > budget) low = middle; else high = middle;
    }
    return high;
  }
}

/** The steps of the least concave function from (0, 0) above all points (cost, gain), steepest first. */
function hull(points, budget) {
  const chain = [[0n, 0n]], order = (x, y) => (x < y ? -1 : x > y ? 1 : 0);
  points = points.filter(([, gain]) => gain > 0n).sort((p, q) => order(p[0], q[0]) || order(q[1], p[1]));
  for (const c of points) {
    budget.tick();
    if (c[1] <= chain.at(-1)[1]) continue;
    for (;;) {
      const b = chain.at(-1), a = chain.at(-2);
      if (a === undefined || (b[1] - a[1]) * (c[0] - a[0]) > (c[1] - a[1]) * (b[0] - a[0])) break;
      chain.pop();
    }
    chain.push(c);
  }
  return chain.slice(1).map((b, i) => [b[0] - chain[i][0], b[1] - chain[i][1]]);
}

// ---------------------------------------------------------------------- the tree

class Tree {
  constructor(statement, radius, nodes) {
    Object.assign(this, { statement, radius, nodes, leaves: 0 });
    const whole = new Region(statement, { before: null }, radius);
    this.known = whole.empty ? null : whole.bounds;
  }
  check(tree) {
    const waiting = [[{ before: null }, 0]];
    while (waiting.length > 0 && this.nodes < tree.length) {
      const node = tree[this.nodes++];
      this.statement.budget.tick();
      const [box, depth] = waiting.pop();
      if (node instanceof Map && !node.has("bounds")) { this.leaf(box, node); this.leaves++; continue; }
      if (depth >= MAX_DEPTH) refuse(`the tree is deeper than ${MAX_DEPTH}`);
      if (node instanceof Map) { waiting.push([this.bounded(box, node), depth + 1]); continue; }
      const [first, second] = this.split(listed(node, `node ${this.nodes} of the tree`));
      waiting.push([{ before: box, cut: second }, depth + 1], [{ before: box, cut: first }, depth + 1]);
    }
    if (waiting.length > 0) refuse(`the tree is cut off: ${waiting.length} regions are not closed`);
  }
  split(node) {
    const { statement } = this, where = `node ${this.nodes} of the tree`, [kind, a, b] = node;
    if ({ number: 3, option: 3, relu: 3, change: 2, cut: 3 }[typeof kind === "string" ? kind : ""] !== node.length) refuse(`${where} is no split`);
    if (kind === "relu") {
      const layer = index(a, `${where}: the layer`, 0, statement.layers - 2), neuron = index(b, `${where}: the neuron`, 0, statement.sizes[layer] - 1);
      return [["active", layer, neuron], ["inactive", layer, neuron]];
    }
    const g = index(a, `${where}: the feature`, 0, statement.schema.features.length - 1), { options } = statement.schema.features[g];
    if (kind === "change") return [["kept", g], ["changed", g]];
    if (kind === "cut" && !options) {
      const t = number(b, `${where}: the threshold`), domain = statement.domains[g], at = floorChange(statement, g, t);
      return [["below", g, [t, domain.coarse ? domain.parted(at)[0] : at + 1n]], ["above", g, [t, changeBeyond(statement, g, t)]]];
    }
    if ((options !== undefined) !== (kind === "option")) refuse(`${where} does not fit the kind of feature ${g}`);
    if (options) { const o = index(b, `${where}: the option`, 0, options.length - 1); return [["alone", g, o], ["others", g, o]]; }
    const [below, beyond] = statement.domains[g].parted(scaled(number(b, `${where}: the change`), statement.grid, `${where}: the change`));
    return [["high", g, below], ["low", g, beyond]];
  }
  /** The box, with bounds of pre-activations: each is shown by multipliers for the rows beyond it, given those before. */
  bounded(box, node) {
    const { statement } = this, where = `node ${this.nodes} of the tree`, given = listed(entries(node, where, "bounds").bounds, `${where}: the bounds`);
    if (given.length > MAX_STEPS) refuse(`${where} has more than ${MAX_STEPS} bounds`);
    const region = this.known === null ? null : new Region(statement, box, this.radius, null, false), bounds = this.boundsOf(region);
    for (const entry of given) {
      const [layerGiven, neuronGiven, signGiven, text, multipliers] = listed(entry, `${where}: a bound`, 5);
      const layer = index(layerGiven, `${where}: a bound's layer`, 0, statement.layers - 2), i = index(neuronGiven, `${where}: a bound's neuron`, 0, statement.sizes[layer] - 1);
      const sign = index(signGiven, `${where}: a bound's sign`, -1, 1), bound = scaled(number(text, `${where}: a bound`), statement.grid, `${where}: a bound`);
      const read = this.multipliers(multipliers, where);
      if (bounds !== null) {
        const [low, high] = bounds[layer][i];
        bounds[layer][i] = sign === 1 ? [largest(low, bound), high] : [low, least(high, bound)];
        if (sign === 0 || !this.negative(region, bounds, read)) refuse(`${where}: the bound of neuron (${layer}, ${i}) is not shown`);
        bounds[layer][i] = sign === 1 ? [low, least(high, bound)] : [largest(low, bound), high];
      } else if (sign === 0) refuse(`${where}: the bound of neuron (${layer}, ${i}) is not shown`);
      box = { before: box, cut: [sign === 1 ? "most" : "least", layer, [i, bound]] };
    }
    return box;
  }
  boundsOf(region) {
    return region === null ? null : this.known.map((row, layer) => row.map((ends, i) => boundsIn(region.extent, layer, i, ends)));
  }
  multipliers(value, where) {
    const { statement } = this, [conditions, neurons] = listed(value, `${where}: the multipliers`, 2), last = statement.layers - 1;
    statement.budget.tick();
    if (statement.forest !== null || statement.rules.any || last === 0 || statement.model.curved) refuse(`${where}: multipliers are for networks with hidden layers of ReLUs, without rules`);
    return [
      listed(conditions, `${where}: the conditions' multipliers`, statement.sizes[last]).map((m) => whole(m, `${where}: a condition's multiplier`, 0n, LARGEST)),
      listed(neurons, `${where}: the neurons' multipliers`, statement.starts[last]).map((m) => (m === null ? null : whole(m, `${where}: a neuron's multiplier`, -LARGEST, LARGEST))),
    ];
  }
  /** Is what the multipliers combine to, which favourable rows make at least 0, negative in the whole region? */
  negative(region, bounds, [conditions, neurons]) {
    const { statement } = this, last = statement.layers - 1;
    if (region.empty || bounds.some((row) => row.some(([low, high]) => low > high))) return true;
    let unit = statement.exponents[last], v = statement.columnsByInput[last].map((column) => statement.product(conditions, column));
    let constant = statement.product(conditions, statement.biases[last]);
    for (let layer = last - 1; layer >= 0; layer--) {
      for (let j = 0; j < v.length; j++) {
        if ((j & 15) === 0) statement.budget.tick();
        const g = v[j], [low, high] = bounds[layer][j], m = neurons[statement.starts[layer] + j];
        const w = m === null ? (low >= 0n ? g : 0n) : m << BigInt(unit);
        const part = largest(g * largest(low, 0n) - w * low, g * largest(high, 0n) - w * high);
        constant += low < 0n && high > 0n ? largest(part, 0n) : part;
        v[j] = w;
      }
      constant = (constant << BigInt(statement.exponents[layer])) + statement.product(v, layer === 0 ? region.first : statement.biases[layer]);
      unit += statement.exponents[layer];
      v = (layer === 0 ? region.columns : statement.columnsByInput[layer]).map((column) => statement.product(v, column));
    }
    return region.most({ a: v, constant, unit }) < 0n;
  }
  leaf(box, leaf) {
    const { statement } = this, where = `node ${this.nodes} of the tree`;
    if (leaf.has("multipliers")) {
      const read = this.multipliers(entries(leaf, where, "multipliers").multipliers, where);
      const open = this.known === null ? null : new Region(statement, box, this.radius, null, false);
      if (open !== null && !this.negative(open, this.boundsOf(open), read)) refuse(`${where} is not closed: a favourable row nearer than claimed may be in it`);
      return;
    }
    const given = listed(entries(leaf, where, "rows").rows, `${where}: the rows`);
    if (given.length > MAX_ROWS) refuse(`${where} has more than ${MAX_ROWS} rows`);
    const region = this.known === null ? null : new Region(statement, box, this.radius, this.known);
    const { sides } = region === null ? { sides: extentOf(statement, box).sides } : region.extent;
    const rows = given.map((row) => this.row(sides, listed(row, `${where}: a row`, 5), where));
    if (region === null || region.empty) return;
    if (statement.forest !== null && rows.length === 0 && statement.forest.closes(region)) return;
    if (rows.length === 0 || this.combined(region, rows) >= 0n) refuse(`${where} is not closed: a favourable row nearer than claimed may be in it`);
  }
  row(sides, [layerGiven, neuronGiven, signGiven, bits, multiplierGiven], where) {
    const { statement } = this, last = statement.layers - 1;
    const layer = index(layerGiven, `${where}: a row's layer`, 0, last), neuron = index(neuronGiven, `${where}: a row's neuron`, 0, statement.sizes[layer] - 1);
    const sign = index(signGiven, `${where}: a row's sign`, -1, 1);
    if (sign === 0 || (layer === last ? sign !== 1 : sides.get(`${layer},${neuron}`) !== sign)) refuse(`${where}: nothing says that row (${layer}, ${neuron}, ${sign}) holds there`);
    if (typeof bits !== "string" || bits.length > Math.floor(statement.starts[last] / 4) + 1 || !/^[0-9a-f]*$/.test(bits)) refuse(`${where}: a row's slopes must be hexadecimal digits`);
    const multiplier = number(multiplierGiven, `${where}: a row's multiplier`);
    if (!(multiplier > 0)) refuse(`${where}: a row's multiplier must be positive`);
    return { layer, neuron, sign: BigInt(sign), slopes: BigInt("0x" + (bits || "0")), multiplier };
  }
  combined(region, rows) {
    const planes = rows.map(({ layer, neuron, sign, slopes, multiplier }) => {
      const plane = region.plane(layer, neuron, sign, slopes), [m, e] = parts(multiplier);
      return { ...plane, m, unit: plane.unit - e };
    });
    const unit = Math.max(...planes.map((plane) => plane.unit), 0), a = region.columns.map(() => 0n);
    let constant = 0n;
    for (const plane of planes) {
      this.statement.budget.look();
      const times = plane.m << BigInt(unit - plane.unit);
      plane.a.forEach((v, i) => { if (v !== 0n) a[i] += times * v; });
      constant += times * plane.constant;
    }
    return region.most({ a, constant, unit });
  }
}

// ---------------------------------------------------------------------- the verdict

function checkDeployed(value, witness) {
  if (value === null) return null;
  const given = entries(value, "the deployed model's answer", "precision", "scores", "agrees", "margin");
  const scores = listed(given.scores, "the deployed scores").map((v) => number(v, "a score of the deployed model"));
  if (!["float32", "float64"].includes(given.precision) || typeof given.agrees !== "boolean") refuse("the deployed model's answer must have a precision and say if it agrees");
  const margin = given.margin === null ? null : number(given.margin, "the margin that covers the deployed model");
  if (given.agrees !== (margin === null)) refuse("the deployed model's answer must have a margin that covers it exactly where it does not agree");
  if (witness === null) refuse("an answer of the deployed model is recorded, but no row that it is about");
  return { precision: given.precision, scores, agrees: given.agrees, margin };
}

function checkWitness(statements, value, upperGiven, lower) {
  const statement = statements[0];
  if (value === null) {
    if (upperGiven !== null) refuse("an upper bound is claimed without a row that shows it");
    return [null, null, null];
  }
  const point = readPoint(statement.schema, value, "the witness"), upper = number(upperGiven, "the claimed upper bound"), most = fraction(upper);
  const refusal = (one) => {
    const why = one.forbids(point);
    if (why) return why;
    if (one.conditions(point).some((z) => z < 0n)) return "a condition is missed";
    return upper < 0 || F.cmp(one.cost(point), one.norm === "square" ? F.mul(most, most) : most) > 0 ? `it is farther than ${upper}` : "";
  };
  const refusals = statements.map(refusal), shown = statements[refusals.indexOf("")];
  if (!shown) refuse(`the witness fails: ${refusals[0]}`);
  if (lower === null || lower > upper) refuse("the witness is nearer than the claimed lower bound");
  return [point, upper, shown];
}

function table(statement, witness) {
  return statement.schema.features.map((f, g) => {
    const words = (x) => (f.options ? printable(optionText(f.options[x])) : f.kind === "integer" ? String(x) : written(x));
    const changed = witness !== null && witness[g] !== statement.factual[g];
    return { name: f.name, now: words(statement.factual[g]), instead: witness === null ? null : words(witness[g]), changed };
  });
}

function checked(bytes, budget) {
  const reader = new Reader(bytes, budget), data = reader.whole();
  if (!(data instanceof Map) || data.get("format") !== "ifonly-certificate") refuse('a certificate is a JSON object with "format": "ifonly-certificate"; this is not one');
  if (data.get("version") !== 2n) refuse(`this certificate has version ${short(data.get("version"))}; version 2 is read`);
  const hasReason = data.get("question") instanceof Map && data.get("question").has("reason");
  const given = entries(data, "a certificate", "format", "version", "made_by", "question", "claim", "witness", "deployed", "proof", "sha256", ...(hasReason ? ["contrasts"] : []));
  const asked = hasReason ? new Map([...given.question].filter(([key]) => key !== "reason")) : given.question;
  const [start, end] = reader.stamp, after = bytes[end] === 0x2c;
  const digest = new Sha256().update(bytes.subarray(0, after ? start : start - 1)).update(bytes.subarray(after ? end + 1 : end)).hex();
  if (given.sha256 !== digest) refuse("the certificate's stamp (sha256) does not fit what it says: it was altered");
  budget.bits = FREE_BITS + BITS_PER_BYTE * bytes.length;
  text(given.made_by, "what made the certificate", 1000);
  const word = given.proof instanceof Map && given.proof.has("trusted");
  const proof = entries(given.proof, "the proof", "grid", "cost_grid", word ? "trusted" : "tree", ...(hasCurve(given.question) ? ["planes"] : []));
  const [grid, costGrid] = ["grid", "cost_grid"].map((key) => index(proof[key], `the proof's ${key}`, 8, MAX_GRID));
  const free = readStatements(asked, grid, costGrid, budget, proof.planes), reason = hasReason ? readReason(given.question.get("reason"), free[0].schema) : null;
  const statements = reason === null ? free : free.map((one) => one.holding(reason.names)), statement = statements[0];
  if (statement.fingerprint === null) statement.fingerprint = new Sha256().update(bytes.subarray(...reader.model)).hex();
  const claim = entries(given.claim, "the claim", "lower", "upper"), lower = claim.lower === null ? null : number(claim.lower, "the claimed lower bound");
  if (lower !== null && lower < 0) refuse("the claimed lower bound is negative");
  const [witness, upper, shown] = checkWitness(statements, given.witness, claim.upper, lower);
  if (reason !== null) {
    if (statement.acted !== null) refuse("a reason has no causes: it is about rows, not about actions");
    if (upper !== null) refuse("a reason is about rows that are not there; it names none");
    checkContrasts(reason, free, given.contrasts, lower);
  }
  if (statement.rules.fewest !== null && upper === null) refuse("the fewest changes are those of a row, and there is none");
  const names = (places) => [...places].sort((a, b) => a - b).map((g) => statement.schema.features[g].name);
  const found = {
    verdict: VALID, reason: reason === null ? null : { held: reason.names, claim: reason.claim }, fewest: statement.rules.fewest === null ? null : statement.rules.limits[statement.rules.fewest][0], failure: "", lower, upper, wanted: [...new Set(statements.map((one) => one.model.wanted))].join(" or "),
    causes: statement.acted === null ? null : { acted: names(shown?.acted ?? []), follows: names(shown?.follows ?? []) }, distance: statement.distance.name,
    features: table(statement, witness), deployed: checkDeployed(given.deployed, witness), network: statement.fingerprint, trusted: "", nodes: 0, leaves: 0,
  };
  if (word) return { ...found, verdict: TRUSTED, trusted: text(proof.trusted, "the trusted solver", 200) };
  const nodes = listed(proof.tree, "the tree");
  if (nodes.length > MAX_NODES) refuse(`the tree has more than ${MAX_NODES} nodes`);
  const parts = statements.flatMap((one) => [...(found.fewest ? [[one.withFewer(), null]] : []), [one, one.radiusOf(lower)]]);
  for (const [one, below] of parts) { // one tree after the other
    const tree = new Tree(one, below, found.nodes);
    tree.check(nodes);
    found.nodes = tree.nodes;
    found.leaves += tree.leaves;
  }
  if (found.nodes < nodes.length) refuse(`node ${found.nodes + 1} of the tree is one too many`);
  return found;
}

/** The verdict on the bytes of a certificate. `seconds`: how long it may take. */
export async function check(bytes, { seconds = 3600 } = {}) {
  const budget = new Budget(seconds);
  try {
    return checked(await unpacked(bytes), budget);
  } catch (error) {
    if (error instanceof Refusal) return { verdict: INVALID, failure: printable(error.message.slice(0, 900)) };
    if (error instanceof Stopped) return { verdict: UNDECIDED, failure: `the check was not over after ${seconds} seconds` };
    if (error instanceof RangeError) return { verdict: INVALID, failure: "the certificate is too deeply nested, or its numbers are too large" };
    throw error;
  }
}

/** The result in words: the verdict alone on the first line and the last. */
export function inWords(result) {
  const lines = [];
  if (result.failure) lines.push(result.failure);
  else {
    const what = `gives ${result.wanted}`, solver = result.trusted;
    if (solver) lines.push(`NOT PROVEN: ${result.lower === null ? "that no such row exists" : "the lower bound"} is the word of ${solver}.`);
    if (result.causes) lines.push(result.lower === null ? `There is no action after which the row that follows ${what}.` : `Every action after which the row that follows ${what} costs (${result.distance}) at least ${written(result.lower)}.`);
    else lines.push(result.lower === null ? `No allowed row ${what}.` : `Every allowed row that ${what} is at a distance (${result.distance}) of at least ${written(result.lower)}.`);
    if (result.reason) {
      const names = result.reason.held.map((name) => `'${printable(name)}'`).join(", ") || "nothing";
      lines.push(`Held are ${names}, and this decides alone (${result.reason.claim}).`);
    }
    if (result.fewest) lines.push(`No such row has fewer than ${result.fewest} changes.`);
    if (result.upper !== null) lines.push(`This one is within ${written(result.upper)}:`);
    const acted = new Set(result.causes?.acted), follows = new Set(result.causes?.follows);
    for (const one of result.features.filter((row) => row.changed || acted.has(row.name))) {
      lines.push(`  '${printable(one.name)}': now ${one.now}, ${follows.has(one.name) ? "what follows" : one.changed ? "instead" : "held at"} ${one.instead}`);
    }
    lines.push(`This is about the model in the file (sha256 ${result.network}).`);
  }
  return [result.verdict, ...lines.map((line) => "  " + line), result.verdict].join("\n");
}

if (typeof process !== "undefined" && process.argv?.[1] && import.meta.url.startsWith("file:")) {
  const [{ pathToFileURL }, { readFile, realpath }] = await Promise.all([import("node:url"), import("node:fs/promises")]);
  const own = await realpath(process.argv[1]).then((path) => pathToFileURL(path).href, () => "");
  if (own === import.meta.url) {
    const words = process.argv.slice(2), files = words.filter((word) => !word.startsWith("--"));
    const seconds = Number(words.find((word) => word.startsWith("--time-limit="))?.slice(13) ?? 3600);
    if (files.length === 0 || !(seconds > 0)) {
      console.error("usage: node ifonly-check.mjs [--json] [--time-limit=S] FILE ...");
      process.exit(2);
    }
    let worst = 0;
    for (const file of files) {
      const bytes = await readFile(file).catch(() => null);
      const result = bytes === null ? { verdict: INVALID, failure: "the file cannot be read" } : await check(new Uint8Array(bytes), { seconds });
      console.log(words.includes("--json") ? JSON.stringify(result) : inWords(result));
      worst = Math.max(worst, CODES[result.verdict]);
    }
    process.exit(worst);
  }
}
