// A world for one client in Node: an analyzer's announcements, a shuffler, an issuer and a clock, all of them the
// test's own; every request is written down. `changes` make any of them hostile.

const here = (path) => new URL(path, import.meta.url);
export const client = await import(process.argv[2] ?? here("../../clients/web/dpcheckin.js"));
const { hex, utf8, concat, canonical, digest, Real } = client;
const { subtle } = globalThis.crypto;

export class MemoryStorage {
  constructor(kept = new Map()) {
    Object.assign(this, { kept, commits: [], before: () => {}, after: () => {} });
  }
  async load() {
    return [...this.kept].map(([key, value]) => [JSON.parse(key), structuredClone(value)]);
  }
  async commit({ add = [], put = [], remove = [] }) {
    this.before();
    if (add.some(([key]) => this.kept.has(JSON.stringify(key)))) throw new Error("written by another tab");
    for (const [key, value] of [...add, ...put]) this.kept.set(JSON.stringify(key), structuredClone(value));
    for (const key of remove) this.kept.delete(JSON.stringify(key));
    this.commits.push({ add, put: put.map(([key]) => key), remove });
    this.after();
  }
}

export async function identity() {
  const pair = await subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  return { sign: pair.privateKey, hex: hex(new Uint8Array(await subtle.exportKey("raw", pair.publicKey))) };
}

export async function signed(document, by) {
  const said = utf8(canonical(document));
  const signature = await subtle.sign("Ed25519", by.sign, concat(utf8(`dpcheckin/1 ${document.type}\0`), said));
  return concat(utf8('{"document":'), said, utf8(`,"signature":"${hex(new Uint8Array(signature))}"}`));
}

export async function rsa() {
  const pair = await subtle.generateKey({ name: "RSA-PSS", modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1), hash: "SHA-384" }, true, ["sign", "verify"]);
  const { n, d } = await subtle.exportKey("jwk", pair.privateKey);
  const number = (text) => BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`);
  const [modulus, secret] = [number(n), number(d)];
  const text = (value) => value.toString(16).padStart(512, "0");
  const answered = new Map();
  return {
    modulus: text(modulus),
    signBlinded(message) {
      if (!answered.has(message)) answered.set(message, this.power(message));
      return answered.get(message);
    },
    power(message) {
      let [result, square] = [1n, BigInt(`0x${message}`) % modulus];
      for (let left = secret; left > 0n; left >>= 1n) {
        if (left & 1n) result = (result * square) % modulus;
        square = (square * square) % modulus;
      }
      return text(result);
    },
  };
}

const POOL = [];

export const PLAN = {
  type: "plan", format: 1, protocol: "shuffled-check-in", population: 1000, minimum_present: 1000, colluding: new Real(0), dropout: new Real(0), minimum_batch: 2,
  rate: new Real(0.5), rounds: 8, randomizer: { name: "dary", local_epsilon: new Real(2), symbols: 3, dimension: 1, clip: new Real(1), encoding: 4 },
  delta: new Real(1e-6), epsilon_budget: new Real(5), round_seconds: new Real(30), compute_seconds: new Real(9), suite: 1, cover: true,
  task: { kind: "histogram", categories: ["red", "green", "blue"], about: "colour", answers: 10 }, nonce: "00".repeat(16),
};
export const LIMITS = { rate: 1, clip: 1, local_epsilon: 4, total_epsilon: 10, total_local_epsilon: 40, total_delta: 1e-3, require_cover: true };
const PROBLEM = (slug, status) => new Response(JSON.stringify({ status, type: `urn:dpcheckin:problem:${slug}` }), { status });

export class World {
  static async make({ plan = {}, limits = {}, issuer = false, config = {}, seed = 1 } = {}) {
    const made = Object.assign(new World(), { seed, time: 1000, requests: [], sent: new Map(), round: 0, void: [], answers: {}, keys: [] });
    for (const who of ["analyzer", "shuffler", "issuer"]) made[who] = await identity();
    while (issuer && POOL.length < 4) POOL.push(await rsa()); // keys are slow to make
    if (issuer) made.keys = [...POOL];
    const pair = await subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
    made.opening = pair;
    made.publicKey = new Uint8Array(await subtle.exportKey("raw", pair.publicKey));
    made.keyId = hex((await digest(made.publicKey)).subarray(0, 8));
    made.plan = Object.fromEntries(Object.entries({ ...PLAN, ...(issuer && { issuer: made.issuer.hex }), ...plan }).filter(([, value]) => value !== undefined));
    made.id = hex(await digest(utf8(canonical(made.plan))));
    made.storage = new MemoryStorage();
    made.config = {
      shuffler: { address: "https://shuffler.example", token: "t".repeat(43), identity: made.shuffler.hex },
      analyzer: { identity: made.analyzer.hex },
      ...(issuer && { issuer: { address: "https://issuer.example", token: "i".repeat(43), identity: made.issuer.hex } }),
      limits: { ...LIMITS, ...limits },
      answers: { colour: "red" },
      ...config,
    };
    return made;
  }

  async page() {
    const key = { type: "key", plan: this.id, suite: this.plan.suite, key: hex(this.publicKey).padEnd(this.plan.suite === 2 ? 2432 : 64, "0"), from_round: 0 };
    return concat(utf8('{"keys":['), await signed(key, this.analyzer), utf8('],"plan":'), await signed(this.plan, this.analyzer), utf8("}"));
  }

  model() {
    return utf8(canonical({ type: "question", index: this.round }));
  }

  async announced(changes = {}, by = this.analyzer) {
    const opens = 1000 + 40 * this.round;
    const token = this.keys.length ? { token_key: this.keys[this.round % this.keys.length].modulus } : {};
    const model = hex(await digest(this.model()));
    return signed({ type: "round", plan: this.id, round: this.round, model, key: this.keyId, opens: new Real(opens), closes: new Real(opens + 30), ...token, ...changes }, by);
  }

  // What shuffler and issuer answer; `answers` has other answers by the beginning of a path.
  fetch = async (url, { method, body, headers }) => {
    const { host, pathname } = new URL(url);
    this.requests.push({ at: this.time, method, path: pathname, size: body?.length ?? 0, names: Object.keys(headers).join() });
    this.effect?.(`${method} ${pathname}`);
    const changed = Object.keys(this.answers).find((start) => pathname.startsWith(start));
    const answer = changed ? await this.answers[changed](pathname, body) : await this.usual(host, method, pathname, body);
    this.effect?.(`answer to ${method} ${pathname}`);
    return answer;
  };

  async usual(host, method, path, body) {
    this.round = Math.max(this.round, Math.floor((this.time - 1000) / 40));
    if (host === "issuer.example") return this.usualIssuer(path, body);
    if (path === "/v1/plan") return new Response(await this.page());
    if (path === "/v1/round") return this.time < 1000 + 40 * this.round + 30 ? new Response(await this.announced()) : PROBLEM("no-round", 404);
    if (path.startsWith("/v1/model/")) return new Response(this.model());
    if (path === "/v1/void") return new Response(await signed({ type: "void", plan: this.id, rounds: this.void }, this.shuffler));
    const round = Number(path.split("/")[3]);
    if (round !== this.round || !(this.time < 1000 + 40 * round + 30)) return PROBLEM("round-closed", 410);
    const all = this.sent.get(round) ?? [];
    this.sent.set(round, [...all, hex(body)]);
    return all.length ? PROBLEM("duplicate", 409) : new Response("{}", { status: 202 });
  }

  async usualIssuer(path, body) {
    if (path.endsWith("/keys")) return new Response(await signed({ type: "token-keys", plan: this.id, first: 0, keys: this.keys.map((key) => key.modulus) }, this.issuer));
    const { rounds, blinded } = JSON.parse(new TextDecoder().decode(body));
    return new Response(canonical({ signatures: rounds.map((round, i) => this.keys[round].signBlinded(blinded[i])) }));
  }

  // Outside of the client: this world's clock, chance that follows from the seed, locks that are always free.
  outside(more = {}) {
    let turn = 0;
    const fill = (array) => array.set(client.shake256(utf8(`${this.seed} ${turn++}`), array.length));
    const sleep = async (seconds, signal) => {
      signal?.throwIfAborted();
      this.time += seconds;
      this.effect?.("sleep");
    };
    const locks = { request: (name, options, call) => call() };
    return { fetch: this.fetch, now: () => this.time, sleep, chance: new client.Chance(fill), storage: this.storage, locks, ...more };
  }

  open(more) {
    return client.Client.open(this.config, this.outside(more));
  }

  // Rounds until so many have been seen, or the client will not go on; why.
  async play(rounds, opened) {
    try {
      const one = opened ?? (await this.open());
      this.last = one;
      while (this.time < 1000 + 40 * rounds) {
        const until = await one.once();
        this.time = Math.max(this.time + 1, until ?? 0);
      }
      return null;
    } catch (problem) {
      return problem;
    }
  }

  coins() {
    return new Map([...this.storage.kept].filter(([key]) => key.startsWith('["round"')).map(([key, value]) => [JSON.parse(key)[2], value.heads]));
  }
}
