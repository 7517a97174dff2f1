// A client of dpcheckin for browsers, without dependencies. What it does and why:
// docs/browser.md; what is sent: docs/wire.md. Everything up to the ledger does no I/O.

export class Malformed extends Error {} // not what docs/wire.md says
export class Refused extends Error {}
export class NotBelieved extends Refused {} // whoever stands between can do that
class Unreachable extends Error {}
class Unauthorized extends Unreachable {}
class Declined extends Refused {} // a plan; the next one may be another

const fail = (Kind) => (why) => {
	throw new Kind(why);
};
const [malformed, refuse, unreachable] = [Malformed, Refused, Unreachable].map(fail);
const { assign, entries, fromEntries, hasOwn } = Object;

// bytes

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const subtle = globalThis.crypto?.subtle;
export const utf8 = (text) => encoder.encode(text);
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (two) => parseInt(two, 16));

export function concat(...parts) {
	const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
	let at = 0;
	for (const part of parts) {
		whole.set(part, at);
		at += part.length;
	}
	return whole;
}

const bigEndian = (number, size) => Uint8Array.from({ length: size }, (_, i) => Number((BigInt(number) >> BigInt(8 * (size - 1 - i))) & 255n));
const toInteger = (bytes) => (bytes.length ? BigInt("0x" + hex(bytes)) : 0n);
export const digest = async (bytes, name = "SHA-256") => new Uint8Array(await subtle.digest(name, bytes));

const ROUND_CONSTANTS = (() => {
	const found = [];
	let register = 1;
	for (let round = 0; round < 24; round++) {
		let [low, high] = [0, 0];
		for (let j = 0; j < 7; j++) {
			const place = (1 << j) - 1;
			if (register & 1) place < 32 ? (low |= 1 << place) : (high |= 1 << (place - 32));
			register = register & 128 ? ((register << 1) ^ 0x171) & 255 : register << 1;
		}
		found.push([low, high]);
	}
	return found;
})();
const TURNS = [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];

function keccak(s) {
	const b = new Int32Array(50);
	const c = new Int32Array(10);
	for (const [low, high] of ROUND_CONSTANTS) {
		for (let i = 0; i < 10; i++) c[i] = s[i] ^ s[i + 10] ^ s[i + 20] ^ s[i + 30] ^ s[i + 40];
		for (let x = 0; x < 5; x++) {
			const [l, h] = [c[2 * ((x + 1) % 5)], c[2 * ((x + 1) % 5) + 1]];
			const dl = c[2 * ((x + 4) % 5)] ^ ((l << 1) | (h >>> 31));
			const dh = c[2 * ((x + 4) % 5) + 1] ^ ((h << 1) | (l >>> 31));
			for (let y = 0; y < 5; y++) {
				const at = 2 * (x + 5 * y);
				const turn = TURNS[x + 5 * y];
				let [p, q] = [s[at] ^ dl, s[at + 1] ^ dh];
				if (turn >= 32) [p, q] = [q, p];
				const t = turn % 32;
				const to = 2 * (y + 5 * ((2 * x + 3 * y) % 5));
				b[to] = t ? (p << t) | (q >>> (32 - t)) : p;
				b[to + 1] = t ? (q << t) | (p >>> (32 - t)) : q;
			}
		}
		for (let y = 0; y < 50; y += 10) {
			for (let i = 0; i < 10; i++) s[y + i] = b[y + i] ^ (~b[y + ((i + 2) % 10)] & b[y + ((i + 4) % 10)]);
		}
		s[0] ^= low;
		s[1] ^= high;
	}
}

export function shake256(message, size) {
	const state = new Int32Array(50);
	const octets = new Uint8Array(state.buffer); // little-endian everywhere
	const blocks = Math.floor(message.length / 136) + 1;
	const padded = concat(message, new Uint8Array(136 * blocks - message.length));
	padded[message.length] ^= 0x1f;
	padded[padded.length - 1] ^= 0x80;
	for (let at = 0; at < padded.length; at += 136) {
		for (let i = 0; i < 136; i++) octets[i] ^= padded[at + i];
		keccak(state);
	}
	const out = new Uint8Array(size);
	for (let at = 0; at < size; at += 136) {
		out.set(octets.subarray(0, Math.min(136, size - at)), at);
		keccak(state);
	}
	return out;
}

// canonical JSON

export class Real {
	constructor(value) {
		this.value = value;
	}
	valueOf() {
		return this.value;
	}
}

function writtenReal(value) {
	if (!Number.isFinite(value)) malformed("a number that is not finite");
	const size = Math.abs(value);
	if (size && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/(e.)(\d)$/, "$10$2");
	return (Object.is(value, -0) ? "-" : "") + value + (Number.isInteger(value) ? ".0" : "");
}

// as UTF-8 they are in the order of their code points
const byCodePoint = (one, other) => (hex(utf8(one)) < hex(utf8(other)) ? -1 : 1);

export function canonical(value) {
	if (value === null || ["boolean", "string"].includes(typeof value)) return JSON.stringify(value);
	if (typeof value === "bigint" || Number.isInteger(value)) return BigInt(value).toString();
	if (value instanceof Real) return writtenReal(value.value);
	if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
	if (typeof value !== "object") malformed("not a JSON value");
	const keys = Object.keys(value).sort(byCodePoint);
	return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

export function parseCanonical(bytes) {
	try {
		const said = decoder.decode(bytes);
		if (/\\u(0001|d)/.test(said)) malformed("the mark of numbers, or half a character");
		const marked = said.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (one) => (one[0] === '"' ? one : `"\\u0001${one}"`));
		const value = JSON.parse(marked, (_, one) => (typeof one === "string" && one[0] === "\u0001" ? numberIn(one.slice(1)) : one));
		if (canonical(value) !== said) malformed("written otherwise");
		return value;
	} catch (problem) {
		malformed(`not canonical JSON: ${problem.message}`);
	}
}

function numberIn(text) {
	if (/[.eE]/.test(text)) return new Real(Number(text));
	if (text.length > 30 + (text[0] === "-")) malformed("an integer of more than 30 digits");
	return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
}

// documents

const LARGEST_DOCUMENT = 1 << 20;
const MODULUS_BYTES = 256;
const TOKEN_BYTES = 32 + MODULUS_BYTES;
const shown = (value) => (value instanceof Real ? writtenReal(value.value) : isObject(value) ? "an object" : String(value)).slice(0, 80);
const range = (length, make) => Array.from({ length }, (_, i) => make(i));
function must(good, name, value, allowed) {
	if (!good) malformed(`${name} = ${shown(value)} is not allowed: expected ${allowed}`);
	return value;
}
const numeric = (value) => ["number", "bigint"].includes(typeof value) || value instanceof Real;
const integer = (low, high = 2 ** 32 - 1) => (name, value) =>
	must(Number.isInteger(value) && value >= low && value <= high, name, value, `an integer from ${low} to ${high}`);
const number = (low, high = Number.MAX_VALUE, least = false) => (name, value) =>
	Number(must(numeric(value) && (least ? value >= low : value > low) && value <= high, name, value, `a number ${least ? "from" : "above"} ${low}, at most ${high}`));
const hexBytes = (size) => (name, value) =>
	must(typeof value === "string" && value.length === 2 * size && !/[^0-9a-f]/.test(value), name, value, `${size} bytes in lower-case hex`);
const oneOf = (...allowed) => (name, value) => must(allowed.includes(value), name, value, allowed.join(" or "));
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Real);
const mapping = (name, value) => must(isObject(value), name, value, "an object");
const text = (name, value) => must(typeof value === "string", name, value, "a text");
const label = (name, value) => must(/^(?:[^\p{C}\p{Z}]| ){1,64}$/u.test(text(name, value)), name, value, "a name of 1 to 64 characters");
const share = number(0, 1);
const seconds = number(0, 2 ** 40);
const listOf = (least, most, check) => (name, value) =>
	must(Array.isArray(value) && value.length >= least && value.length <= most, name, value, `a list of ${least} to ${most}`).map((one, i) => check(`${name}[${i}]`, one));
const ascending = (name, value) =>
	must(listOf(0, 4096, integer(0))(name, value).every((one, i) => !i || one > value[i - 1]), name, value, "ascending rounds") && value;

function randomizerTable(name, value) {
	const checks = { name: label, dimension: integer(1, 1 << 26), clip: number(0), encoding: oneOf(4) };
	for (const [field, check] of entries(checks)) check(`${name}.${field}`, mapping(name, value)[field]);
	for (const [field, one] of entries(value)) must(numeric(one) || ["string", "boolean"].includes(typeof one), `${name}.${field}`, one, "a number or a name");
	return value;
}

const SCHEMAS = {
	plan: (given) => ({
		format: oneOf(1), population: integer(2), minimum_present: integer(2), colluding: number(0, 1, true), dropout: number(0, 1, true),
		protocol: oneOf("shuffled-check-in"), rate: share, ...(hasOwn(given, "issuer") && { issuer: hexBytes(32) }),
		minimum_batch: integer(0), rounds: integer(1), randomizer: randomizerTable, delta: share, epsilon_budget: number(0), round_seconds: seconds,
		compute_seconds: seconds, suite: oneOf(1), cover: oneOf(true, false), task: mapping, nonce: hexBytes(16),
	}),
	key: () => ({ plan: hexBytes(32), suite: oneOf(1), key: hexBytes(32), from_round: integer(0) }),
	round: (given) => ({
		plan: hexBytes(32), round: integer(0), model: hexBytes(32), key: hexBytes(8), opens: number(0, 2 ** 40, true), closes: seconds,
		...(hasOwn(given, "token_key") && { token_key: hexBytes(MODULUS_BYTES) }),
	}),
	"token-keys": () => ({ plan: hexBytes(32), first: integer(0), keys: listOf(1, 1024, hexBytes(MODULUS_BYTES)) }),
	void: () => ({ plan: hexBytes(32), rounds: ascending }),
};
const honest = (plan) => plan.population - Math.ceil(plan.colluding * plan.population - 1e-9);
const TOGETHER = {
	plan(plan) {
		must(plan.minimum_present >= plan.population, "plan.minimum_present", plan.minimum_present, "at least the population that is priced");
		must(plan.dropout < 1, "plan.dropout", plan.dropout, "below 1");
		must(plan.colluding < 1 && honest(plan) >= 2, "plan.colluding", plan.colluding, "leaving two honest clients");
		must(plan.compute_seconds <= 0.7 * plan.round_seconds, "plan.compute_seconds", plan.compute_seconds, "at most 0.7 of a round");
		must(!plan.issuer || plan.cover, "plan.cover", false, "true with an issuer");
	},
	round: ({ opens, closes }) => must(opens < closes, "round.closes", closes, "a time after it opens"),
	"token-keys": ({ first, keys }) => integer(0)("token-keys.first", first + keys.length - 1),
};

function fields(name, value, checks, optional = {}) {
	mapping(name, value);
	const all = { ...checks, ...optional };
	const odd = [...Object.keys(checks).filter((one) => !hasOwn(value, one)), ...Object.keys(value).filter((one) => !hasOwn(all, one))];
	if (odd.length) malformed(`${name}: missing or unknown fields ${odd.sort().join(", ").slice(0, 200)}`);
	return fromEntries(Object.keys(value).map((one) => [one, all[one](`${name}.${one}`, value[one])]));
}

export function readDocument(kind, value) {
	const found = fields(kind, mapping(kind, value), { type: oneOf(kind), ...SCHEMAS[kind](value) });
	TOGETHER[kind]?.(found);
	return found;
}

const START = utf8('{"document":');
const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

// Parsed only if `identity` (in hex) has signed the bytes as they came.
export async function readSigned(kind, data, identity) {
	const cut = data.length - 144;
	const end = /^,"signature":"([0-9a-f]{128})"\}$/.exec(cut > START.length && data.length <= LARGEST_DOCUMENT ? latin(data.subarray(cut)) : "");
	if (!end || START.some((byte, i) => byte !== data[i])) malformed("not a signed document");
	const said = data.subarray(START.length, cut);
	const key = await subtle.importKey("raw", unhex(identity), "Ed25519", false, ["verify"]);
	const holds = await subtle.verify("Ed25519", key, unhex(end[1]), concat(utf8(`dpcheckin/1 ${kind}\0`), said));
	if (!holds) malformed(`the signature of this ${kind} does not hold`);
	return { ...readDocument(kind, parseCanonical(said)), id: hex(await digest(said)) };
}

async function readPlanPage(data, identity) {
	const said = data.length <= LARGEST_DOCUMENT ? latin(data) : "";
	const one = '\\{"document":\\{[^{}]{1,8192}\\},"signature":"[0-9a-f]{128}"\\}';
	const start = new RegExp(`^\\{"keys":\\[((?:${one}(?:,${one})*)?)\\],"plan":`).exec(said);
	if (!start || !said.endsWith("}")) malformed("the plan page is not one");
	const plan = await readSigned("plan", data.subarray(start[0].length, -1), identity);
	const keys = [];
	for (const { 0: found, index } of start[1].matchAll(new RegExp(one, "g"))) {
		const key = await readSigned("key", data.subarray(9 + index, 9 + index + found.length), identity);
		const raw = unhex(key.key);
		if (key.plan === plan.id) keys.push({ ...key, raw, keyId: hex((await digest(raw)).subarray(0, 8)) });
	}
	return { plan, keys };
}

// envelopes

const HPKE_SUITE = concat(utf8("HPKE"), Uint8Array.of(0, 0x20, 0, 1, 0, 1));
const KEM_SUITE = concat(utf8("KEM"), Uint8Array.of(0, 0x20));
const [EMPTY, ZERO] = [new Uint8Array(0), new Uint8Array(32)];

async function hmac(key, data) {
	const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
	return new Uint8Array(await subtle.sign("HMAC", imported, data));
}

const extract = (suite, salt, what, material) => hmac(salt, concat(utf8("HPKE-v1"), suite, utf8(what), material));
async function expand(suite, secret, what, info, size) { // at most one block of SHA-256
	const block = await hmac(secret, concat(bigEndian(size, 2), utf8("HPKE-v1"), suite, utf8(what), info, Uint8Array.of(1)));
	return block.subarray(0, size);
}

export async function keySchedule(exchanged, enc, publicKey, info) {
	const shared = await expand(KEM_SUITE, await extract(KEM_SUITE, ZERO, "eae_prk", exchanged), "shared_secret", concat(enc, publicKey), 32);
	const context = concat(Uint8Array.of(0), await extract(HPKE_SUITE, ZERO, "psk_id_hash", EMPTY), await extract(HPKE_SUITE, ZERO, "info_hash", info));
	const secret = await extract(HPKE_SUITE, shared, "secret", EMPTY);
	return { key: await expand(HPKE_SUITE, secret, "key", context, 16), nonce: await expand(HPKE_SUITE, secret, "base_nonce", context, 12) };
}

export async function hpkeSeal(publicKey, info, plaintext, pair, aad = EMPTY) {
	const own = pair ?? (await subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]));
	const theirs = await subtle.importKey("raw", publicKey, { name: "X25519" }, false, []);
	const enc = new Uint8Array(await subtle.exportKey("raw", own.publicKey));
	const exchanged = new Uint8Array(await subtle.deriveBits({ name: "X25519", public: theirs }, own.privateKey, 256));
	if (exchanged.every((byte) => byte === 0)) malformed("not a public key of suite 1");
	const { key, nonce } = await keySchedule(exchanged, enc, publicKey, info);
	const sealing = await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
	return concat(enc, new Uint8Array(await subtle.encrypt({ name: "AES-GCM", iv: nonce, additionalData: aad }, sealing, plaintext)));
}

export const sealedBytes = (plan) => 32 + 8 + plan.randomizer.dimension + (plan.issuer === undefined ? 0 : TOKEN_BYTES) + 16;

export function header(plan, round, keyId, cover = false) {
	const version = plan.issuer === undefined ? 2 : 3;
	return concat(utf8("DPCI"), Uint8Array.of(version, plan.suite, cover ? 0 : 1, 0), bigEndian(round, 4), unhex(keyId), bigEndian(sealedBytes(plan), 4));
}

export const boundTo = (planId, model, head) => concat(utf8("dpcheckin/1 report"), unhex(planId), unhex(model), head);
const octetsPayload = (report) => concat(Uint8Array.of(4, 0, 0, 0), bigEndian(report.length, 4), report);

export async function sealReport(plan, key, announced, report, token) {
	const payload = concat(octetsPayload(report), token);
	if (payload.length !== sealedBytes(plan) - 48) malformed("a report of another size");
	const head = header(plan, announced.round, key.keyId);
	return concat(head, await hpkeSeal(key.raw, boundTo(plan.id, announced.model, head), payload));
}

export const coverEnvelope = (plan, key, announced, chance) => concat(header(plan, announced.round, key.keyId, true), chance.bytes(sealedBytes(plan)));

// blind signatures

const EXPONENT = 65537n;

function power(base, exponent, modulus) {
	let [result, square] = [1n, base % modulus];
	for (let left = exponent; left > 0n; left >>= 1n) {
		if (left & 1n) result = (result * square) % modulus;
		square = (square * square) % modulus;
	}
	return result;
}

function inverse(value, modulus) {
	let [r, s, x, y] = [modulus, value % modulus, 0n, 1n];
	while (s) [r, s, x, y] = [s, r % s, y, x - (r / s) * y];
	if (r !== 1n) malformed("not an honest key");
	return ((x % modulus) + modulus) % modulus;
}

function checkedModulus(modulusHex) {
	const modulus = BigInt("0x" + modulusHex);
	const bits = modulus.toString(2).length;
	if (modulus % 2n === 0n || bits % 8 || bits < 2048) malformed("a token key is odd and has 2048 bits or more");
	return modulus;
}

async function pssEncode(message, salt, size) {
	const hashed = await digest(concat(new Uint8Array(8), await digest(message, "SHA-384"), salt), "SHA-384");
	const rest = size - 48 - salt.length - 2;
	if (rest < 0) malformed("a short modulus");
	const block = concat(new Uint8Array(rest), Uint8Array.of(1), salt);
	for (let i = 0; 48 * i < block.length; i++) {
		const mask = await digest(concat(hashed, bigEndian(i, 4)), "SHA-384");
		for (let j = 0; j < 48 && 48 * i + j < block.length; j++) block[48 * i + j] ^= mask[j];
	}
	block[0] &= 0x7f;
	return concat(block, hashed, Uint8Array.of(0xbc));
}

export async function blind(modulusHex, message, salt, factor) {
	const modulus = checkedModulus(modulusHex);
	const size = modulusHex.length / 2;
	if (factor <= 0n || factor >= modulus) malformed("a blinding factor below the modulus");
	const encoded = toInteger(await pssEncode(message, salt, size));
	const uncovers = inverse(factor, modulus);
	inverse(encoded, modulus);
	return { message: bigEndian((encoded * power(factor, EXPONENT, modulus)) % modulus, size), inverse: uncovers };
}

const base64url = (bytes) => btoa(latin(bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

export async function finalize(modulusHex, message, signed, uncovers, saltLength = 48) {
	const modulus = checkedModulus(modulusHex);
	const size = modulusHex.length / 2;
	if (signed.length !== size) malformed(`a blind signature has ${size} bytes`);
	const signature = bigEndian((toInteger(signed) * uncovers) % modulus, size);
	const jwk = { kty: "RSA", n: base64url(unhex(modulusHex)), e: "AQAB", alg: "PS384", ext: true };
	const key = await subtle.importKey("jwk", jwk, { name: "RSA-PSS", hash: "SHA-384" }, false, ["verify"]);
	if (!(await subtle.verify({ name: "RSA-PSS", saltLength }, key, signature, message))) malformed("the signature does not hold");
	return signature;
}

const tokenMessage = (planId, round, own) => concat(utf8("dpcheckin/1 token"), unhex(planId), bigEndian(round, 4), own);

export async function blindedToken(secret, planId, round, modulusHex) {
	const material = concat(utf8("dpcheckin/1 token secret"), secret, unhex(planId), bigEndian(round, 4), unhex(modulusHex));
	const stream = shake256(material, 32 + 48 + MODULUS_BYTES + 16);
	const own = stream.subarray(0, 32);
	const factor = toInteger(stream.subarray(80)) % BigInt("0x" + modulusHex);
	const message = tokenMessage(planId, round, own);
	return { own, tokenMessage: message, ...(await blind(modulusHex, message, stream.subarray(32, 80), factor)) };
}

// chance

export class Chance {
	constructor(fill = (array) => crypto.getRandomValues(array)) {
		this.fill = fill;
	}
	bytes(count) {
		const found = new Uint8Array(count);
		this.fill(found);
		return found;
	}
	word() {
		const view = new DataView(this.bytes(8).buffer);
		return view.getBigUint64(0, true);
	}
	below(high) {
		const wide = BigInt(high);
		const limit = ((1n << 64n) / wide) * wide;
		for (;;) {
			const word = this.word();
			if (word < limit) return Number(word % wide);
		}
	}
	coin(threshold) {
		return this.word() < threshold;
	}
	uniform() {
		return Number(this.word() >> 11n) * 2 ** -53 + 2 ** -54;
	}
}

// thresholds

const FRACTION = 320n;
const ONE = 1n << FRACTION;
const WHOLE = 1n << 64n;

function fixed(value) {
	if (!(Math.abs(value) >= 2 ** -200 && Math.abs(value) <= 2 ** 200) && value !== 0) refuse(`a number of ${value} cannot be kept here`);
	let [mantissa, shift] = [value, 0n];
	while (!Number.isInteger(mantissa)) [mantissa, shift] = [mantissa * 2, shift + 1n];
	return (BigInt(mantissa) << FRACTION) >> shift;
}

function expMinus(value) {
	const x = fixed(value) >> 10n;
	let [term, sum] = [ONE, ONE];
	for (let i = 1n; term !== 0n; i++) {
		term = -(term * x) / (i << FRACTION);
		sum += term;
	}
	for (let i = 0; i < 10; i++) sum = (sum * sum) >> FRACTION;
	return sum;
}

// Rounded to the side of more noise: the own value never likelier, another never less likely than the law says.
const MARGIN = 1n << 60n; // above every error here, in units of 2^-320
const least = (up, down) => ((up - MARGIN) << 64n) / (down + MARGIN);
const most = (up, down) => ((up + MARGIN) << 64n) / (down - MARGIN) + 1n;
export const ownOf = (epsilon, symbols) => least(ONE, ONE + BigInt(symbols - 1) * expMinus(epsilon));
export const chosenOf = (epsilon, symbols, chosen) => least(BigInt(chosen) * ONE, BigInt(chosen) * ONE + BigInt(symbols - chosen) * expMinus(epsilon));
export function otherBitOf(epsilon, truth) {
	const up = (fixed(truth) * expMinus(epsilon)) >> FRACTION;
	return most(up, up + ONE - fixed(truth));
}
export const thresholdOf = (value) => (fixed(value) * WHOLE) >> FRACTION;

// randomizers

const bitsOf = (value) => value.toString(2).length;
const widthOf = (limit) => Math.ceil(bitsOf(limit - 1) / 8);
const littleEndian = (numbers, limits) => concat(...numbers.map((one, i) => bigEndian(one, widthOf(limits[i])).reverse()));
const odd = (bits) => {
	let left = bits;
	for (let shift = 16; shift; shift >>= 1) left ^= left >>> shift;
	return left & 1;
};

function dary({ local_epsilon, symbols }) {
	const own = ownOf(local_epsilon, symbols);
	return {
		limits: [symbols], symbols,
		report(value, chance) {
			const other = (value + 1 + chance.below(symbols - 1)) % symbols;
			return [chance.coin(own) ? value : other];
		},
	};
}

function hadamard({ local_epsilon, symbols }) {
	const own = ownOf(local_epsilon, 2);
	const order = 2 ** bitsOf(symbols);
	return {
		limits: [order], symbols,
		report(value, chance) {
			const row = value + 1;
			const column = chance.below(order);
			// flipping one bit that the row has turns a column of one sign into one of the other
			return [!odd(row & column) !== chance.coin(own) ? column ^ (row & -row) : column];
		},
	};
}

const packed = (bits) => range(Math.ceil(bits.length / 8), (i) => bits.slice(8 * i, 8 * i + 8).reduce((sum, bit, j) => sum | (bit << j), 0));
const octets = (symbols) => Array(Math.ceil(symbols / 8)).fill(256);

function subset({ local_epsilon, symbols, chosen }) {
	must(chosen < symbols, "randomizer.chosen", chosen, "below the symbols");
	const own = chosenOf(local_epsilon, symbols, chosen);
	const inBits = chosen * (symbols <= 256 ? 1 : symbols <= 65536 ? 2 : 4) > Math.ceil(symbols / 8);
	return {
		limits: inBits ? octets(symbols) : Array(chosen).fill(symbols), symbols,
		report(value, chance) {
			const found = new Set(); // as if there were no own symbol
			while (found.size < chosen) {
				const other = chance.below(symbols - 1);
				found.add(other + (other >= value));
			}
			const [first, ...rest] = found;
			const set = [chance.coin(own) ? value : first, ...rest].sort((one, other) => one - other);
			return inBits ? packed(range(symbols, (i) => Number(set.includes(i)))) : set;
		},
	};
}

function unary({ local_epsilon, symbols, truth }) {
	const [own, other] = [thresholdOf(truth), otherBitOf(local_epsilon, truth)];
	return {
		limits: octets(symbols), symbols,
		report: (value, chance) => packed(range(symbols, (i) => Number(chance.coin(i === value ? own : other)))),
	};
}

const DITHERS = 256;
const levelOf = (value, steps, dither, part) => Math.min(Math.max(Math.floor(steps * value + (dither + part) / DITHERS), 0), steps);

function levels({ local_epsilon, steps }) {
	const response = dary({ local_epsilon, symbols: steps + 1 });
	return {
		limits: [DITHERS, steps + 1],
		report(value, chance) {
			const dither = chance.below(DITHERS);
			return [dither, ...response.report(levelOf(value, steps, dither, chance.uniform()), chance)];
		},
	};
}

function steadier(local_epsilon, symbols) {
	const of = (p, q) => (p * (1 - p) / symbols + (1 - 1 / symbols) * q * (1 - q)) / (p - q) ** 2;
	const lie = Math.exp(-local_epsilon);
	const own = 1 / (1 + (symbols - 1) * lie);
	const plain = symbols === 2 || of(own, own * lie) <= of(1 / (1 + lie), 0.5);
	return (plain ? dary : hadamard)({ local_epsilon, symbols });
}

function tree({ local_epsilon, leaves, branching }) {
	must(branching <= leaves, "randomizer.branching", branching, "at most the leaves");
	const widths = [1];
	while (widths[0] * branching < leaves) widths.unshift(widths[0] * branching);
	const nodes = widths.map((width) => steadier(local_epsilon, Math.ceil(leaves / width)));
	return {
		limits: [nodes.length, Math.max(...nodes.map((node) => node.limits[0]))], symbols: leaves,
		report(value, chance) {
			const level = chance.below(nodes.length);
			return [level, ...nodes[level].report(Math.floor(value / widths[level]), chance)];
		},
	};
}

function hash({ local_epsilon, buckets, functions, salt }) {
	must((buckets & (buckets - 1)) === 0, "randomizer.buckets", buckets, "a power of two");
	const response = dary({ local_epsilon, symbols: buckets });
	const words = new DataView(shake256(utf8(`dpcheckin local hashing ${salt}`), 24 * functions).buffer);
	const hashed = (value, which) => {
		const [low, high, plus] = [0, 8, 16].map((at) => words.getBigUint64(24 * which + at, true));
		return Number(BigInt.asUintN(64, low * (value & 0xffffffffn) + high * (value >> 32n) + plus) >> BigInt(65 - bitsOf(buckets)));
	};
	return {
		limits: [functions, buckets], hashed,
		report(value, chance) {
			const which = chance.below(functions);
			return [which, ...response.report(hashed(value, which), chance)];
		},
	};
}

const inside01 = (name, value) => Number(must(numeric(value) && value > 0 && value < 1, name, value, "strictly between 0 and 1"));
const symbols = integer(2, 1 << 20);
const MAKERS = {
	dary: [dary, { symbols }],
	binary: [dary, { symbols: oneOf(2) }],
	hadamard: [hadamard, { symbols }],
	subset: [subset, { symbols, chosen: integer(1) }],
	unary: [unary, { symbols, truth: inside01 }],
	levels: [levels, { steps: integer(1, 1 << 20) }],
	tree: [tree, { leaves: integer(2, 1 << 14), branching: integer(2) }],
	hash: [hash, { buckets: integer(2, 1 << 24), functions: integer(1, 1 << 16), salt: text }],
};

export function makeRandomizer({ name, dimension, clip: _, encoding: __, ...given }) {
	oneOf(...Object.keys(MAKERS))("randomizer.name", name);
	const [make, checks] = MAKERS[name];
	const read = fields("randomizer", given, { local_epsilon: number(2 ** -20, 40), ...checks });
	const made = make(read);
	const size = made.limits.reduce((sum, limit) => sum + widthOf(limit), 0);
	must(dimension === size, "randomizer.dimension", dimension, `the ${size} bytes sent`);
	return { ...made, name, localEpsilon: read.local_epsilon, size, encoded: (value, chance) => littleEndian(made.report(value, chance), made.limits) };
}

// questions

const FLOAT = /^\s*[+-]?(\d+(_\d+)*(\.(\d+(_\d+)*)?)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?\s*$/i;

function toNumber(value) {
	if (["number", "boolean", "bigint"].includes(typeof value)) return Number(value);
	if (typeof value !== "string" || value.length > 400) return NaN;
	if (FLOAT.test(value)) return Number(value.replace(/_/g, ""));
	const endless = /^\s*([+-]?)inf(inity)?\s*$/i.exec(value);
	return endless ? Number(endless[1] + "Infinity") : NaN;
}
const between = (value, low, high) => Math.min(Math.max(toNumber(value) || 0, low), high);
function asText(value) {
	if (typeof value === "boolean") return value ? "True" : "False";
	return ["string", "number", "bigint"].includes(typeof value) ? String(value) : "";
}

const finite = (name, value) => Number(must(numeric(value) && Number.isFinite(Number(value)), name, value, "a finite number"));
const names = (name, value) => must(new Set(listOf(2, 1 << 20, text)(name, value)).size === value.length, name, value, "names that differ");
const inOrder = (asked) => (must(asked.low < asked.high, "task.low", asked.low, `below high = ${asked.high}`), asked);

function ofNames(categories) {
	const places = new Map(categories.map((name, i) => [name, i]));
	const other = Math.max(0, categories.findIndex((name) => name.toLowerCase() === "other"));
	return { symbols: categories.length, encode: (value) => places.get(asText(value)) ?? other };
}
const COUNTING = "dary binary subset unary hadamard";
const HISTOGRAM = [COUNTING, { categories: (name, value) => (Array.isArray(value) ? names : symbols)(name, value) }, ({ categories }) =>
	Array.isArray(categories) ? ofNames(categories) : { symbols: categories, encode: (value) => Math.trunc(between(value, 0, categories - 1)) }];
const COUNT = [COUNTING, { categories: oneOf(2) }, () => ({
	symbols: 2,
	encode: (value) => Number(typeof value === "string" ? ["1", "true", "yes"].includes(value.trim().toLowerCase()) : toNumber(value) === 1),
})];
const MEAN = ["levels", { low: finite, high: finite }, (asked) => {
	const { low, high } = inOrder(asked);
	return { encode: (value) => Math.min(Math.max((between(value, low, high) - low) / (high - low), 0), 1) };
}];
const BINS = ["tree", { low: finite, high: finite, bins: integer(2, 1 << 14) }, (asked) => {
	const { low, high, bins } = inOrder(asked);
	const step = (high - low) / bins;
	// by the edges that answers name: what lies on one is never put below it
	const edges = range(bins - 1, (i) => (i + 1) * step + low);
	const encode = (value) => {
		const found = between(value, low, high);
		return edges.filter((edge) => edge <= found).length;
	};
	return { symbols: bins, encode };
}];
const SMALL = "abcdefghijklmnopqrstuvwxyz -";
function anySign(sign) {
	const [place, unit] = [SMALL.indexOf(sign), sign.charCodeAt()];
	if (place >= 0) return [place + 1, 5];
	if (/\d/.test(sign)) return [416 + unit, 9];
	if (/[A-Z]/.test(sign)) return [896 + unit, 10];
	return [sign.split("").reduce((sum, one) => sum * 2 ** 21 + 2031616 + one.charCodeAt(), 0), 21 * sign.length];
}
function asWord(codes, bits) {
	let [found, left] = [0n, bits];
	for (const [code, size] of codes) {
		if ((left -= size) < 0) return found << BigInt(left + size);
		found = (found << BigInt(size)) | BigInt(code);
	}
	return found << BigInt(left);
}
const HITTERS = ["hash", { bits: integer(8, 64), top: integer(1), false_positives: inside01, alphabet: text, salt: text }, ({ bits, alphabet }) => {
	const more = Math.max(Math.ceil((bits - 16) / 10), 0);
	const stages = range(more + 1, (i) => bits - 10 * (more - i));
	const letters = new Map([...alphabet].map((letter, i) => [letter, i + 1]));
	const width = bitsOf(letters.size);
	must(width <= bits && letters.size === [...alphabet].length, "task.alphabet", alphabet, "characters that differ and fit");
	const signs = alphabet === "any" ? anySign : (letter) => [letters.get(letter), width];
	const spelled = (value) => asWord([...asText(value).slice(0, 4096)].map(signs).filter(([code]) => code), bits);
	const largest = (1n << BigInt(bits)) - 1n;
	const counted = (value) => {
		const plain = BigInt(/^\s*[+-]?\d{1,400}\s*$/.test(asText(value)) ? asText(value).replace("+", "") : Math.trunc(between(value, 0, 2 ** bits)));
		return plain < 0n ? 0n : plain > largest ? largest : plain;
	};
	return { neutral: 0n, encode: alphabet ? spelled : counted, asked: (word, index) => word >> BigInt(bits - stages[index % stages.length]) };
}];
const KINDS = {
	count: [...COUNT, { categories: 2 }],
	histogram: HISTOGRAM,
	mean: MEAN,
	sum: MEAN,
	distribution: [...BINS, { bins: 64 }],
	quantiles: [BINS[0], { ...BINS[1], probabilities: listOf(1, 1024, inside01) }, BINS[2], { bins: 64, probabilities: [0.25, 0.5, 0.75] }],
	"heavy-hitters": [...HITTERS, { bits: 24, top: 50, false_positives: 0.05, alphabet: "", salt: "" }],
};

// It refuses no value: who writes a question chooses whom a refusal would tell about.
export function readQuestion({ task: { kind, about = "", answers, ...own }, rounds }, randomizer) {
	oneOf(...Object.keys(KINDS))("task.kind", kind);
	const [readers, checks, make, usual = {}] = KINDS[kind];
	const details = fields("task", { ...usual, ...own }, checks);
	const made = make(details);
	const fits = readers.split(" ").includes(randomizer.name) && (made.symbols === undefined || made.symbols === randomizer.symbols);
	must(fits, "randomizer.name", randomizer.name, `one that answers a ${kind} of this size`);
	return {
		kind, about: text("task.about", about), answers: integer(1)("task.answers", answers ?? rounds + 2), details, neutral: made.neutral ?? 0,
		value: (given, index) => (made.asked ? made.asked(made.encode(given), index) : made.encode(given)),
	};
}

function askedIndex(model) {
	const { type, index } = mapping("question", parseCanonical(model));
	return oneOf("question")("question.type", type) && integer(0)("question.index", index);
}

// price

function binomial(trials, probability) {
	if (trials === 0 || probability <= 0) return [0, [1]];
	if (probability >= 1) return [trials, [1]];
	const odds = probability / (1 - probability);
	const mode = Math.min(trials, Math.floor((trials + 1) * probability));
	const [below, above] = [[], [1]];
	for (let k = mode, p = 1; k > 0 && p > 1e-32; k--) below.push((p *= k / (trials - k + 1) / odds));
	for (let k = mode, p = 1; k < trials && p > 1e-32; k++) above.push((p *= ((trials - k) / (k + 1)) * odds));
	const all = [...below.reverse(), ...above];
	const sum = all.reduce((total, p) => total + p, 0);
	return [mode - below.length, all.map((p) => p / sum)];
}

function grouped([first, probabilities], groups) {
	const step = Math.ceil(probabilities.length / groups);
	const found = [];
	for (let i = 0; i < probabilities.length; i += step) {
		const some = probabilities.slice(i, i + step);
		found.push([first + i, first + i + some.length - 1, some.reduce((sum, p) => sum + p, 0)]);
	}
	return found;
}

const ORDERS = range(30, (i) => 1 + 0.25 * 1.33 ** i);

// log E[(P/Q)^order] for the pair of docs/theory.md that dominates check-in, any pure randomizer; groups are replaced
// by what is worse: fewer empty seats, more reports that point either way.
function roundMoments(crowd, rate, localEpsilon) {
	const e0 = Math.exp(localEpsilon);
	const either = (2 * rate) / (e0 + 1);
	const empty = rate === 1 ? 0 : (1 - rate) / (1 - either);
	const excess = ORDERS.map(() => 0);
	for (const [fewest, largest, weight] of grouped(binomial(crowd, either), 96)) {
		if (largest === 0) continue;
		const [start, half] = binomial(largest, 0.5);
		const differences = new Map(); // |a - b|, rounded up
		const step = Math.max(1, Math.floor(half.length / 240));
		half.forEach((p, i) => {
			const difference = Math.abs(2 * (start + i) - largest);
			const up = Math.min(largest, step * Math.ceil(difference / step));
			if (up) differences.set(up, (differences.get(up) ?? 0) + p);
		});
		for (const [absent, , part] of grouped(binomial(crowd - largest, empty), 16)) {
			const all = absent + ((e0 + 1) / 2) * fewest;
			for (const [difference, p] of differences) {
				const r = (((e0 - 1) / 2) * difference) / all;
				if (!(r < 1)) return ORDERS.map(() => Infinity);
				const root = Math.sqrt(1 - r * r);
				const slope = Math.atanh(r);
				const chance = weight * part * p * all;
				for (let i = 0; i < ORDERS.length; i++) {
					const grown = Math.sinh((ORDERS[i] - 0.5) * slope) ** 2;
					excess[i] += chance * (2 * root * grown - (r * r) / (1 + root));
				}
			}
		}
	}
	return excess.map((sum) => Math.log1p((sum / crowd) * (1 + 1e-9) + 1e-15));
}

function reportMoments(rate, localEpsilon) {
	const truth = 1 / (1 + Math.exp(-localEpsilon));
	return ORDERS.map((order) => {
		const grown = truth * Math.exp((order - 1) * localEpsilon) + (1 - truth) * Math.exp((1 - order) * localEpsilon);
		return Number.isFinite(grown) ? Math.log1p(rate * (grown - 1)) : order * localEpsilon;
	});
}

function epsilonOf(moments, rounds, delta) {
	const found = moments.map((moment, i) => {
		const order = ORDERS[i];
		return (rounds * moment - Math.log(delta) + order * Math.log1p(-1 / order) - Math.log(order - 1)) / (order - 1);
	});
	return Math.max(0, Math.min(...found.filter((value) => !Number.isNaN(value)), Infinity));
}

export class Price {
	#central = new Map();
	constructor(plan, localEpsilon) {
		require(plan.rate < 1 || plan.minimum_batch >= plan.population, `minimum_batch = ${plan.minimum_batch} at rate 1`);
		require(plan.rate === 1 || plan.dropout === 0, `dropout = ${plan.dropout}: this client knows 0`);
		assign(this, { plan, one: localEpsilon, reports: reportMoments(plan.rate, localEpsilon) });
	}
	epsilon(rounds) {
		if (rounds === 0) return 0;
		if (!this.#central.has(rounds)) {
			const { rate, delta } = this.plan;
			const crowd = honest(this.plan);
			this.moments ??= roundMoments(crowd, rate, this.one);
			const full = rate === 1 ? 0 : rate ** crowd; // that nobody was away, for which nothing is proved
			const left = delta - rounds * (full + Math.exp(this.one) * 1e-22);
			const found = left > delta / 2 ? epsilonOf(this.moments.map((moment) => moment - Math.log1p(-full)), rounds, left) : Infinity;
			this.#central.set(rounds, Math.min(found, this.local(rounds)));
		}
		return this.#central.get(rounds);
	}
	local(rounds) {
		return rounds && Math.min(rounds * this.one, epsilonOf(this.reports, rounds, this.plan.delta));
	}
}

// storage and ledger

const settled = (request) =>
	new Promise((resolve, reject) => assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) }));

export class IndexedStorage {
	static async open(name) {
		const asked = indexedDB.open(`dpcheckin ${name}`, 1);
		asked.onupgradeneeded = () => asked.result.createObjectStore("kept");
		return assign(new IndexedStorage(), { base: await settled(asked) });
	}
	async load() {
		const store = this.base.transaction("kept").objectStore("kept");
		const [keys, values] = await Promise.all([settled(store.getAllKeys()), settled(store.getAll())]);
		return keys.map((key, i) => [key, values[i]]);
	}
	commit({ add = [], put = [], remove = [] }) {
		return new Promise((resolve, reject) => {
			const transaction = this.base.transaction("kept", "readwrite", { durability: "strict" });
			const store = transaction.objectStore("kept");
			for (const [key, value] of add) store.add(value, key);
			for (const [key, value] of put) store.put(value, key);
			for (const key of remove) store.delete(key);
			transaction.oncomplete = () => resolve();
			transaction.onabort = () => reject(transaction.error ?? new Error("not written"));
		});
	}
}

export class Ledger {
	static async open(storage) {
		const made = assign(new Ledger(), { storage, plans: new Map(), kept: new Map() });
		for (const [[kind, name, round], value] of await storage.load()) {
			if (kind === "plan") made.of(name).spent = value;
			else if (kind === "round") made.of(name).coins.set(round, value);
			else made.kept.set(name, value);
		}
		return made;
	}
	of(plan) {
		if (!this.plans.has(plan)) this.plans.set(plan, { spent: { epsilon: 0, local_epsilon: 0, delta: 0 }, coins: new Map() });
		return this.plans.get(plan);
	}
	roundsOf(plan) {
		return [...this.of(plan).coins.values()].filter((coin) => !coin.void).length;
	}
	taken() {
		return [...this.plans.values()].reduce((sum, { coins }) => sum + coins.size, 0);
	}
	voidInARow(plan) {
		const taken = [...this.of(plan).coins].sort(([one], [other]) => other - one).map(([, coin]) => coin.void);
		if (taken[0] === false) taken.shift();
		return (taken.indexOf(false) + taken.length + 1) % (taken.length + 1);
	}
	totals(plan = null, instead = null) {
		const all = [...this.plans].map(([name, one]) => (name === plan ? instead : one.spent));
		const sum = (field) => all.reduce((total, one) => total + one[field], 0);
		return { epsilon: sum("epsilon"), local_epsilon: sum("local_epsilon"), delta: sum("delta") };
	}
	after(plan, price) {
		const rounds = Math.min(this.roundsOf(plan) + 1, price.plan.rounds);
		return { epsilon: price.epsilon(rounds), local_epsilon: price.local(this.of(plan).coins.size + 1), delta: price.plan.delta };
	}
	// One entry, before anything is sent: the round, its coin, its price, and what leaves unless something else is ready.
	async takePart(parcel, price, heads) {
		const { plan, round } = parcel;
		const [spent, coin] = [this.after(plan, price), { heads, void: false }];
		await this.storage.commit({ add: [[["round", plan, round], coin]], put: [[["plan", plan], spent], [["kept", "outbox"], parcel]] });
		this.of(plan).spent = spent;
		this.of(plan).coins.set(round, coin);
		this.kept.set("outbox", parcel);
	}
	async settle(plan, price, rounds) {
		const known = this.of(plan);
		const coins = rounds.filter((round) => known.coins.get(round)?.void === false).map((round) => [round, { ...known.coins.get(round), void: true }]);
		if (!coins.length) return;
		const spent = { ...known.spent, epsilon: price.epsilon(Math.min(this.roundsOf(plan) - coins.length, price.plan.rounds)) };
		await this.storage.commit({ put: [[["plan", plan], spent], ...coins.map(([round, coin]) => [["round", plan, round], coin])] });
		known.spent = spent;
		for (const [round, coin] of coins) known.coins.set(round, coin);
	}
	async keep(name, value) {
		const key = ["kept", name];
		await this.storage.commit(value === null ? { remove: [key] } : { put: [[key, value]] });
		this.kept[value === null ? "delete" : "set"](name, value);
	}
}

// what the owner allows

function address(name, value) {
	const { protocol, hostname } = URL.canParse(value) ? new URL(value) : {};
	const near = protocol === "http:" && ["127.0.0.1", "[::1]", "localhost"].includes(hostname);
	return must(protocol === "https:" || near, name, value, "https (http only on this machine)").replace(/\/$/, "");
}
const access = { address, token: text };
const identity = hexBytes(32);

export function readConfig(given) {
	const [above, flag, inside] = [number(0), oneOf(true, false), (checks, optional) => (name, value) => fields(name, value, checks, optional)];
	const limits = inside({ rate: share, clip: above, local_epsilon: above, total_epsilon: above, total_local_epsilon: above, total_delta: share }, {
		minimum_population: integer(2), minimum_batch: integer(0), minimum_compute_seconds: number(0, 2 ** 40, true), require_cover: flag, rounds: integer(1), void_rounds: integer(1),
	});
	const parties = { shuffler: inside(access, { identity }), analyzer: inside({ identity }), limits };
	const read = fields("configuration", given, parties, { issuer: inside({ ...access, identity }), plan: identity, poll_seconds: above, answers: mapping, name: label });
	const usual = { minimum_population: 2, minimum_batch: read.issuer ? 2 : 0, minimum_compute_seconds: 0.05, require_cover: false, rounds: Infinity, void_rounds: 50 };
	return { poll_seconds: 1, name: "owner", ...read, answers: { ...read.answers }, limits: { ...usual, ...read.limits } };
}

function require(good, why) {
	if (!good) throw new Declined(why);
}
const figure = (value) => String(Number((value * 1.0005).toPrecision(4))); // rounded up
const named = (issuer) => `issuer ${issuer?.slice(0, 16)}`;
const answerTo = (answers, about) => answers[hasOwn(answers, about) ? about : ""];

function admit(plan, config) {
	const { limits, issuer } = config;
	require(!config.plan || plan.id === config.plan, "another plan than the owner's");
	require(plan.issuer === issuer?.identity, `${named(plan.issuer)}, and ${named(issuer?.identity)} in this client's configuration`);
	for (const [what, offered, wanted] of [
		["fewest reports", plan.minimum_batch, limits.minimum_batch],
		["seconds for computing", plan.compute_seconds, limits.minimum_compute_seconds],
		["honest clients", honest(plan), limits.minimum_population],
	]) require(offered >= wanted, `${what}: ${offered}, this client wants ${wanted}`);
	require(plan.rounds <= limits.rounds, `${plan.rounds} rounds, this client allows ${limits.rounds}`);
	require(plan.cover || !limits.require_cover, "no cover, and this client requires it");
	let randomizer, question;
	try {
		randomizer = makeRandomizer(plan.randomizer);
		question = readQuestion(plan, randomizer);
	} catch (problem) {
		throw new Declined(`nothing that can be answered here: ${problem.message}`);
	}
	const price = new Price(plan, randomizer.localEpsilon);
	require(answerTo(config.answers, question.about) !== undefined, `no answer about ${JSON.stringify(question.about)}`);
	for (const [what, measure, limit] of [
		["rate", () => plan.rate, limits.rate],
		["clip", () => Number(plan.randomizer.clip), limits.clip],
		["delta", () => plan.delta, limits.total_delta],
		["epsilon of one report", () => randomizer.localEpsilon, limits.local_epsilon],
		["epsilon of the whole plan", () => price.epsilon(plan.rounds), limits.total_epsilon],
	]) {
		const value = measure();
		require(value <= limit, `${what} is ${figure(value)}, this client allows ${limit}`);
	}
	return { plan, price, randomizer, question };
}

// the client

const LOOKS = 5; // for void rounds, before a budget is called spent
const PREFIX = "urn:dpcheckin:problem:";

function problemIn(body) {
	try {
		const { type } = JSON.parse(decoder.decode(body));
		return type.startsWith(PREFIX) ? type.slice(PREFIX.length) : null;
	} catch {
		return null;
	}
}

async function readAtMost(answer, limit) {
	const parts = [];
	let size = 0;
	for (const reader = answer.body?.getReader(); reader; ) {
		const { done, value } = await reader.read();
		if (done) break;
		parts.push(value);
		if ((size += value.length) <= limit) continue;
		reader.cancel().catch(() => {});
		unreachable(`an answer of more than ${limit} bytes`);
	}
	return concat(...parts);
}

const pauseFor = (time, signal) =>
	new Promise((resolve, reject) => {
		const timer = setTimeout(resolve, Math.min(1000 * time, 2 ** 31 - 1));
		signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
	});

const believed = (reading) =>
	reading.catch((problem) => {
		throw problem instanceof Malformed ? new NotBelieved(problem.message) : problem;
	});

export class Client extends EventTarget {
	static async open(given, outside = {}) {
		if (globalThis.isSecureContext === false || !subtle) refuse("no secure context: https, or localhost");
		const config = readConfig(given);
		const counts = { rounds: 0, without_token: 0 };
		const made = assign(new Client(), { config, counts, joined: null, lastRound: -1, status: "waiting", skew: 0, looks: LOOKS, window: 1, tokensAfter: 0 });
		const usual = { fetch: (...asked) => fetch(...asked), now: () => Date.now() / 1000, sleep: pauseFor, chance: new Chance(), locks: globalThis.navigator?.locks };
		made.outside = { ...usual, ...outside, storage: outside.storage ?? (await IndexedStorage.open(config.name)) };
		made.ledger = await Ledger.open(made.outside.storage);
		return made;
	}

	answer(topic, value) {
		this.config.answers[topic] = value;
	}

	state() {
		const { status, counts, ledger, config: { limits }, joined: { plan, question } = {} } = { ...this, joined: this.joined ?? undefined };
		const taken = plan ? ledger.roundsOf(plan.id) : 0;
		return { status, counts, plan, question, limits, taken, stopped: ledger.kept.has("stopped"), spent: ledger.totals(), plans: ledger.plans.size };
	}

	async run(outer) {
		const { locks, storage } = this.outside;
		if (!locks) refuse("no locks: two tabs could spend one budget twice");
		this.stopping = new AbortController();
		const signal = (this.signal = outer ? AbortSignal.any([outer, this.stopping.signal]) : this.stopping.signal);
		this.#say("waiting for another tab");
		try {
			await locks.request(`dpcheckin ${this.config.name}`, { signal }, async () => {
				this.ledger = await Ledger.open(storage); // another tab may have written since
				await this.#loop(signal);
			});
		} catch (problem) {
			if (signal.aborted) return;
			this.#say(`not taking part: ${problem.message}`);
			throw problem;
		}
	}

	async stop() {
		await this.ledger.keep("stopped", true);
		this.stopping?.abort(new Error("stopped"));
		this.#say("stopped by the owner");
	}
	async resume() {
		await this.ledger.keep("stopped", null);
	}

	#say(status) {
		this.status = status;
		this.dispatchEvent(new Event("change"));
		return null;
	}

	async #loop(signal) {
		const usual = this.config.poll_seconds;
		let [pause, unknown] = [usual, 60];
		while (!signal.aborted) {
			if (this.ledger.kept.has("stopped")) return this.#say("stopped by the owner");
			try {
				const until = await this.once();
				[pause, unknown] = [usual, 60];
				await this.#sleepUntil(until ?? 0);
				await this.#sleepAbout(until === null ? usual : 0.2 * usual);
			} catch (problem) {
				const declined = problem instanceof Declined;
				if (signal.aborted || !(declined || problem instanceof Unreachable || (problem instanceof NotBelieved && this.joined))) throw problem;
				this.#say(`${declined ? "not taking part" : "trying again"}: ${problem.message}`);
				const stranger = problem instanceof Unauthorized;
				await this.#sleepAbout(stranger ? unknown : pause);
				if (stranger) unknown = Math.min(2 * unknown, 3600);
				else pause = Math.min(2 * pause, 30);
			}
		}
	}

	async once() {
		if ((!this.joined || this.#saidEnough()) && !(await this.#join())) return this.#say("no survey is announced");
		const held = this.ledger.kept.get("outbox");
		if (held) return this.#deliver(held);
		if (this.#saidEnough()) return this.#say("this survey has heard enough");
		await this.#lookForVoidRounds();
		if (!this.#mayGoOn()) return null;
		if (this.config.issuer) await this.#refill();
		const announced = await this.#current();
		if (!announced) return this.#say("no round is open");
		const { closes, round, model } = announced;
		if (this.ledger.of(this.joined.plan.id).coins.has(round)) return closes;
		if (!this.#keyOf(announced)) await this.#join();
		const token = await this.#tokenFor(announced);
		if (!token) {
			this.counts.without_token++; // not there at all: who cannot report must not count as present
			this.#say(`no token for round ${round}`);
			return closes;
		}
		const { body } = await this.#get(this.config.shuffler, `/v1/model/${model}`);
		if (hex(await digest(body)) !== model) throw new NotBelieved("another model than the round names");
		const moment = this.#moment(announced);
		if (moment !== null) await this.#takePart(announced, body, moment, token);
		else this.#say(`too late for round ${round}`);
		return closes;
	}

	// Cover and neutral report before the coin; the owner's value only after it was written down.
	async #takePart(announced, model, moment, token) {
		const { plan, price, randomizer, question } = this.joined;
		const { chance } = this.outside;
		const { round, opens, closes } = announced;
		const key = this.#keyOf(announced);
		if (!key) refuse("a key that the analyzer has not announced");
		const report = (value) => sealReport(plan, key, announced, randomizer.encoded(value, chance), token);
		const neutral = await report(question.neutral);
		const away = plan.cover ? coverEnvelope(plan, key, announced, chance) : EMPTY;
		const heads = chance.coin(thresholdOf(plan.rate));
		const parcel = { plan: plan.id, round, opens, closes, moment, envelope: heads ? neutral : away };
		await this.ledger.takePart(parcel, price, heads);
		[this.lastRound, this.looks, this.unasked] = [round, LOOKS, true];
		this.#say(`taking part in round ${round}`);
		let own = neutral;
		try {
			own = await report(question.value(answerTo(this.config.answers, question.about), askedIndex(model))); // on tails for nothing
		} catch {
			// whatever it is: the neutral report leaves, and nobody outside sees a difference
		}
		await this.#sleepUntil(moment);
		if (heads) parcel.envelope = own;
		await this.ledger.keep("outbox", parcel);
		this.counts.rounds++;
		await this.#deliver(parcel);
	}

	async #deliver(parcel) {
		const late = this.joined.plan.id !== parcel.plan || !(this.#now() < parcel.closes);
		if (!late) {
			await this.#sleepUntil(parcel.moment);
			if (parcel.envelope.length) await this.#send(parcel);
			this.#say(`round ${parcel.round} is dealt with`);
		}
		await this.ledger.keep("outbox", null);
		return late ? null : parcel.closes;
	}

	async #send({ round, opens, closes, envelope }) {
		for (let pause = 0.05 * (closes - opens); ; pause *= 2) {
			try {
				const { status, problem } = await this.#ask(this.config.shuffler, "PUT", `/v1/rounds/${round}/report`, envelope);
				if (status === 202 || problem === "duplicate") return; // after a lost answer that means delivered
				if (!["too-many-requests", "busy", "storage", "no-round"].includes(problem)) return;
			} catch (problem) {
				if (this.signal?.aborted || problem instanceof Unauthorized || !(problem instanceof Unreachable)) throw problem;
			}
			const wait = this.#about(pause);
			if (this.#now() + wait >= closes) return;
			await this.outside.sleep(wait, this.signal);
		}
	}

	#moment({ opens, closes }) {
		const { compute_seconds, round_seconds } = this.joined.plan;
		const first = Math.max(this.#now(), opens) + compute_seconds * Math.max((closes - opens) / round_seconds, 1);
		const left = closes - 0.15 * (closes - opens) - first;
		return left > 0 ? first + left * this.outside.chance.uniform() : null;
	}

	// what there is

	async #join() {
		const page = await this.#get(this.config.shuffler, "/v1/plan", "not-found");
		if (!page) return false;
		const { plan, keys } = await believed(readPlanPage(page.body, this.config.analyzer.identity));
		if (this.declined?.id === plan.id) throw this.declined.problem;
		if (this.joined?.plan.id !== plan.id) {
			try {
				[this.joined, this.lastRound] = [admit(plan, this.config), -1];
			} catch (problem) {
				this.declined = { id: plan.id, problem };
				throw problem;
			}
		}
		this.joined.keys = keys;
		return true;
	}

	#keyOf({ key, round }) {
		return this.joined.keys.find((one) => one.keyId === key && one.from_round <= round);
	}

	async #current() {
		for (let i = 0; i < 2; i++) {
			const answer = await this.#get(this.config.shuffler, `/v1/round?plan=${this.joined.plan.id}`, "no-round");
			if (!answer) return null;
			const announced = await believed(readSigned("round", answer.body, this.config.analyzer.identity));
			if (announced.plan === this.joined.plan.id) {
				if (!announced.token_key !== !this.joined.plan.issuer) refuse("a token key exactly when there is an issuer");
				if (announced.round < this.lastRound) throw new NotBelieved(`round ${announced.round} after round ${this.lastRound}`);
				return announced;
			}
			if (!(await this.#join()) || this.#saidEnough() || !this.#mayGoOn()) return null;
		}
		return null;
	}

	#saidEnough() {
		return this.joined && this.ledger.roundsOf(this.joined.plan.id) >= this.joined.question.answers;
	}

	async #lookForVoidRounds() {
		const { shuffler } = this.config;
		const answer = shuffler.identity && this.unasked !== false && (await this.#get(shuffler, "/v1/void", "not-found"));
		if (!answer) return;
		const statement = await believed(readSigned("void", answer.body, shuffler.identity));
		const { plan, price } = this.joined;
		if (statement.plan === plan.id) await this.ledger.settle(plan.id, price, statement.rounds);
		this.unasked = false;
	}

	checkBudget() {
		const { ledger, config: { limits }, joined: { plan, price } } = this;
		const after = ledger.totals(plan.id, ledger.after(plan.id, price));
		for (const [what, limit] of [["epsilon", limits.total_epsilon], ["local_epsilon", limits.total_local_epsilon], ["delta", limits.total_delta]]) {
			if (!(after[what] <= limit * (1 + 1e-12))) refuse(`one more round would make ${what} ${figure(after[what])} > ${limit}`);
		}
		const empty = ledger.voidInARow(plan.id);
		if (empty >= limits.void_rounds) refuse(`${empty} void rounds in a row`);
	}

	#mayGoOn() {
		try {
			this.checkBudget();
			return true;
		} catch (problem) {
			if (!(problem instanceof Refused) || !this.config.shuffler.identity || this.looks-- === 0) throw problem;
			this.unasked = true;
			return false;
		}
	}

	// tokens

	async #refill() {
		const ahead = Object.keys(this.#held()).filter((round) => Number(round) > this.lastRound);
		if (2 * ahead.length <= this.window || !this.told) await this.#fetchTokens();
	}

	#held() {
		const wallet = this.ledger.kept.get("tokens");
		return wallet?.plan === this.joined.plan.id ? wallet.held : {};
	}

	async #tokenFor({ token_key, round }) {
		if (!token_key) return EMPTY;
		const mine = () => (!this.older && this.#held()[round]?.key === token_key ? this.#held()[round].token : undefined);
		if (!mine()) await this.#fetchTokens();
		return mine();
	}

	async #fetchTokens() {
		if (this.#now() < this.tokensAfter) return;
		try {
			await this.#exchangeTokens();
		} catch (problem) {
			if (this.signal?.aborted || !(problem instanceof Unreachable || problem instanceof Malformed)) throw problem;
			this.#say(`no tokens fetched, trying again: ${problem.message}`);
			this.tokensAfter = this.#now() + this.#about(problem instanceof Unauthorized ? 3600 : 10);
		}
	}

	async #exchangeTokens() {
		const { config: { issuer }, joined: { plan: { id: plan } }, ledger } = this;
		const page = await this.#get(issuer, `/v1/plans/${plan}/keys`);
		const { plan: theirs, first, keys } = await readSigned("token-keys", page.body, issuer.identity);
		if (theirs !== plan) malformed("keys of another plan");
		this.window = keys.length;
		if (!ledger.kept.has("secret")) await ledger.keep("secret", this.outside.chance.bytes(32));
		const held = this.#held();
		const missing = keys.map((key, i) => ({ key, round: first + i })).filter(({ key, round }) => held[round]?.key !== key);
		if (!missing.length && this.told) return;
		if (!missing.length) missing.push({ key: keys[0], round: first }); // once in each life
		for (const one of missing) one.hidden = await blindedToken(ledger.kept.get("secret"), plan, one.round, one.key);
		const request = canonical({ rounds: missing.map(({ round }) => round), blinded: missing.map(({ hidden }) => hex(hidden.message)), taken: ledger.taken() });
		const answer = await this.#ask(issuer, "POST", `/v1/plans/${plan}/tokens`, utf8(request), LARGEST_DOCUMENT);
		this.older = answer.problem === "older-copy"; // of a ledger that was cleared or put back: no token is used
		if (this.older) throw new Unauthorized("this ledger was cleared: the issuer knows of more rounds");
		if (answer.status !== 200) unreachable(answer.problem ?? `${answer.status}`);
		this.told = true;
		const { signatures } = mapping("tokens", parseCanonical(answer.body));
		listOf(missing.length, missing.length, (name, one) => one === null || hexBytes(MODULUS_BYTES)(name, one))("signatures", signatures);
		const kept = fromEntries(entries(held).filter(([round]) => Number(round) >= first));
		for (const [i, { key, round, hidden }] of missing.entries()) {
			const signed = signatures[i] && (await finalize(key, hidden.tokenMessage, unhex(signatures[i]), hidden.inverse).catch(() => null));
			if (signed) kept[round] = { key, token: concat(hidden.own, signed) };
		}
		await ledger.keep("tokens", { plan, held: kept });
	}

	// asking, and time

	async #ask(party, method, path, body, limit = 64 << 10) {
		const headers = { authorization: `Bearer ${party.token}` };
		const signal = AbortSignal.any([AbortSignal.timeout(30000), ...(this.signal ? [this.signal] : [])]);
		const asked = { method, body, headers, signal, cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
		try {
			const answer = await this.outside.fetch(party.address + path, asked);
			const coding = answer.headers.get("content-encoding") ?? "identity";
			if (coding !== "identity") unreachable(`an answer in ${coding.slice(0, 20)}, not asked for`);
			const off = Date.parse(answer.headers.get("date")) / 1000 - this.outside.now();
			if (party === this.config.shuffler && !Number.isNaN(off)) this.skew = Math.abs(off) > 30 ? off : 0;
			const found = await readAtMost(answer, limit);
			const problem = problemIn(found);
			if (problem === "unauthorized") throw new Unauthorized("this client's token is not known");
			return { status: answer.status, body: found, problem };
		} catch (problem) {
			if (this.signal?.aborted || problem instanceof Unreachable) throw problem;
			unreachable(problem.name);
		}
	}

	async #get(party, path, missing) {
		const answer = await this.#ask(party, "GET", path, undefined, LARGEST_DOCUMENT);
		if (answer.status === 200) return answer;
		if (answer.problem && answer.problem === missing) return null;
		unreachable(`${path}: ${answer.problem ?? answer.status}`);
	}

	#now() {
		return this.outside.now() + this.skew;
	}
	#about(time) {
		return time * (0.5 + this.outside.chance.uniform());
	}
	async #sleepUntil(moment) {
		for (let left; (left = moment - this.#now()) > 0; ) await this.outside.sleep(left, this.signal);
	}
	async #sleepAbout(time) {
		await this.outside.sleep(this.#about(time), this.signal);
	}
}
