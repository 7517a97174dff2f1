// Checks the module against tests/vectors/*.json: in Node (`node vectors.mjs`), and in a page, which imports `check`.

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// A stream of bytes that follows from a seed: chance for tests alone, the same verdict twice.
export function seeded(client, seed) {
  let [turn, used, pool] = [0, 0, []];
  return new client.Chance((array) => {
    if (used + array.length > pool.length) [pool, used] = [client.shake256(client.utf8(`${seed} ${turn++}`), 4096 + array.length), 0];
    array.set(pool.subarray(used, (used += array.length)));
  });
}

// Chi-square of counts against a law, less what is expected, in standard deviations; cells under five are put together.
export function distance(counts, law, total) {
  let [rest, restSeen, sum, cells] = [0, 0, 0, 0];
  const add = (expected, seen) => {
    sum += (seen - expected) ** 2 / expected;
    cells++;
  };
  for (const [report, p] of Object.entries(law)) {
    const seen = counts.get(report) ?? 0;
    if (p * total >= 5) add(p * total, seen);
    else [rest, restSeen] = [rest + p * total, restSeen + seen];
  }
  if (rest > 0) add(Math.max(rest, 1), restSeen);
  const strange = [...counts.keys()].filter((report) => !Object.hasOwn(law, report));
  return strange.length ? Infinity : (sum - (cells - 1)) / Math.sqrt(2 * Math.max(cells - 1, 1));
}

async function opened(client, vector, plan, planId) {
  const { hex, unhex, concat } = client;
  const envelope = unhex(vector.envelope);
  const head = envelope.subarray(0, 24);
  const sealed = envelope.subarray(24, 24 + client.sealedBytes(plan));
  const pkcs8 = concat(unhex("302e020100300506032b656e04220420"), unhex(vector.private_key));
  const own = await crypto.subtle.importKey("pkcs8", pkcs8, { name: "X25519" }, false, ["deriveBits"]);
  const theirs = await crypto.subtle.importKey("raw", sealed.slice(0, 32), { name: "X25519" }, false, []);
  const exchanged = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, own, 256));
  const info = client.boundTo(planId, vector.model_digest, head);
  const { key, nonce } = await client.keySchedule(exchanged, sealed.slice(0, 32), unhex(vector.public_key), info);
  const opening = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["decrypt"]);
  return hex(new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv: nonce }, opening, sealed.slice(32))));
}

function inverseOf(value, modulus) {
  let [r, s, x, y] = [modulus, value, 0n, 1n];
  while (s) [r, s, x, y] = [s, r % s, y, x - (r / s) * y];
  return ((x % modulus) + modulus) % modulus;
}

export async function check(client, vectors) {
  const { hex, unhex, utf8 } = client;
  const failures = [];
  let checked = 0;
  const expect = (good, what) => {
    checked++;
    if (!good) failures.push(what);
  };
  const fails = async (call) => {
    try {
      await call();
      return false;
    } catch (problem) {
      return problem instanceof client.Malformed || problem instanceof client.Refused || problem.name === "OperationError";
    }
  };

  for (const { text, canonical } of vectors.canonical) {
    const refused = await fails(async () => client.parseCanonical(utf8(text)));
    expect(refused === !canonical, `canonical: ${text}`);
    if (canonical && !refused) expect(client.canonical(client.parseCanonical(utf8(text))) === text, `written again: ${text}`);
  }

  for (const [name, file] of Object.entries(vectors).filter(([which]) => which.startsWith("documents-"))) {
    for (const { id, canonical, signed } of file.documents) {
      const kind = JSON.parse(canonical).type;
      const { suite = 1, protocol, randomizer } = JSON.parse(canonical);
      if (suite !== 1 || (kind === "plan" && (protocol !== "shuffled-check-in" || randomizer.encoding !== 4))) {
        expect(await fails(() => client.readSigned(kind, utf8(signed), file.identity)), `${name}: a ${kind} that browsers take no part in`);
        continue;
      }
      const read = await client.readSigned(kind, utf8(signed), file.identity);
      expect(read.id === id, `${name}: id of the ${kind}`);
      expect(await fails(() => client.readSigned(kind === "plan" ? "key" : "plan", utf8(signed), file.identity)), `${name}: one kind for another`);
      expect(await fails(() => client.readSigned(kind, utf8(signed.replace('"plan"', '"plam"').replace('1700000000.25', '1700000001.25').replace('"rounds"', '"round5"')), file.identity)), `${name}: changed`);
      expect(await fails(() => client.readSigned(kind, utf8(signed), "00".repeat(31) + "01")), `${name}: another identity`);
      expect(await fails(() => client.readSigned(kind, utf8(`${signed} `), file.identity)), `${name}: something behind`);
    }
  }

  for (const name of ["octets", "octets-token"]) {
    const vector = vectors[`envelope-${name}`];
    const plan = client.readDocument("plan", client.parseCanonical(utf8(vectors[`documents-${name}`].documents[0].canonical)));
    const id = vectors[`documents-${name}`].documents[0].id;
    const payload = vector.payload + (vector.token ?? "");
    expect((await opened(client, vector, plan, id)) === payload, `envelope-${name}: opens`);
    expect(hex(client.header(plan, vector.round, vector.key_id)) === vector.envelope.slice(0, 48), `envelope-${name}: header`);
    const report = Uint8Array.from(vector.report);
    const key = { raw: unhex(vector.public_key), keyId: vector.key_id };
    const announced = { round: vector.round, model: vector.model_digest };
    const envelope = hex(await client.sealReport({ ...plan, id }, key, announced, report, unhex(vector.token ?? "")));
    expect(envelope.length === vector.envelope.length && (await opened(client, { ...vector, envelope }, plan, id)) === payload, `envelope-${name}: sealed here`);
    const cover = client.coverEnvelope(plan, key, announced, new client.Chance());
    expect(cover.length === unhex(vector.envelope).length && cover[6] === 0, `envelope-${name}: cover`);
  }

  const rfc = vectors.rfc9180;
  const pkcs8 = client.concat(unhex("302e020100300506032b656e04220420"), unhex(rfc.ephemeral_private));
  const pair = {
    privateKey: await crypto.subtle.importKey("pkcs8", pkcs8, { name: "X25519" }, false, ["deriveBits"]),
    publicKey: await crypto.subtle.importKey("raw", unhex(rfc.ephemeral_public), { name: "X25519" }, true, []),
  };
  const sealed = await client.hpkeSeal(unhex(rfc.recipient_public), unhex(rfc.info), unhex(rfc.plaintext), pair, unhex(rfc.aad));
  expect(hex(sealed) === rfc.ephemeral_public + rfc.ciphertext, "rfc9180");
  expect(await fails(() => client.hpkeSeal(new Uint8Array(32), new Uint8Array(0), new Uint8Array(1))), "a key of zeros seals nothing");

  for (const one of vectors.rfc9474.vectors) {
    const modulus = (BigInt(`0x${one.p}`) * BigInt(`0x${one.q}`)).toString(16);
    const message = unhex(one.input_msg);
    const blinding = inverseOf(BigInt(`0x${one.inv}`), BigInt(`0x${modulus}`)); // the RFC gives the inverse of the factor
    const hidden = await client.blind(modulus, message, unhex(one.salt), blinding);
    expect(hex(hidden.message) === one.blinded_msg, `${one.name}: blinded`);
    const signature = await client.finalize(modulus, message, unhex(one.blind_sig), hidden.inverse, one.salt.length / 2);
    expect(hex(signature) === one.sig, `${one.name}: signature`);
    expect(await fails(() => client.finalize(modulus, message, unhex(one.blind_sig).map((byte, i) => byte ^ (i === 9)), hidden.inverse, one.salt.length / 2)), `${one.name}: a wrong answer`);
  }
  for (const one of vectors.tokens) {
    const hidden = await client.blindedToken(unhex(one.secret), one.plan, one.round, one.modulus);
    expect(hex(hidden.message) === one.blinded && hex(hidden.own) === one.number, "tokens: blinded");
    const signature = await client.finalize(one.modulus, hidden.tokenMessage, unhex(one.signed), hidden.inverse);
    expect(one.number + hex(signature) === one.token, "tokens: token");
  }

  const { own, chosen, other_bit, rate } = vectors.coins;
  // the side of more noise: exact, or one less of 2^64 for the own value; exact, or one more for another's
  const near = (found, wanted, side) => [0n, side].includes(found - BigInt(wanted));
  for (const one of own) expect(near(client.ownOf(one.local_epsilon, one.symbols), one.threshold, -1n), `own ${JSON.stringify(one)}`);
  for (const one of chosen) expect(near(client.chosenOf(one.local_epsilon, one.symbols, one.chosen), one.threshold, -1n), `chosen ${JSON.stringify(one)}`);
  for (const one of other_bit) expect(near(client.otherBitOf(one.local_epsilon, one.truth), one.threshold, 1n), `bit ${JSON.stringify(one)}`);
  for (const one of rate) expect(client.thresholdOf(one.rate) === BigInt(one.threshold), `rate ${one.rate}`);

  const samples = 40000;
  for (const { randomizer, limits, laws } of vectors.randomizers) {
    const made = client.makeRandomizer(randomizer);
    expect(same(made.limits, limits) && made.size === randomizer.dimension, `limits of ${JSON.stringify(randomizer)}`);
    for (const { value, law } of laws) {
      const chance = seeded(client, JSON.stringify([randomizer, value]));
      const counts = new Map();
      const held = randomizer.name === "hash" ? BigInt(value) : value;
      for (let i = 0; i < samples; i++) {
        const report = hex(made.encoded(held, chance));
        counts.set(report, (counts.get(report) ?? 0) + 1);
      }
      const off = distance(counts, law, samples);
      expect(off < 5, `law of ${JSON.stringify(randomizer)} at ${value}: ${off} standard deviations`);
    }
  }
  for (const { salt, buckets, functions, cases } of vectors.hashes) {
    const made = client.makeRandomizer({ name: "hash", local_epsilon: 2, buckets, functions, salt, clip: 1, encoding: 4, dimension: Math.ceil((functions - 1).toString(2).length / 8) + Math.ceil((buckets - 1).toString(2).length / 8) });
    for (const one of cases) expect(made.hashed(BigInt(one.value), one.function) === one.bucket, `hash ${JSON.stringify(one)}`);
  }

  const READERS = { count: ["dary", 2], histogram: ["dary", 0], mean: ["levels", 0], quantiles: ["tree", 0], distribution: ["tree", 0], "heavy-hitters": ["hash", 0] };
  for (const { task, values } of vectors.questions) {
    const [name, size] = READERS[task.kind];
    const kinds = Array.isArray(task.categories) ? task.categories.length : task.categories ?? task.bins ?? size;
    const question = client.readQuestion({ task, rounds: 4 }, { name, symbols: kinds || undefined });
    for (const { value, encoded, asked } of values) {
      if (asked) for (const [index, word] of asked.entries()) expect(String(question.value(value, index)) === word, `${JSON.stringify(task)}: ${JSON.stringify(value)}, stage ${index}`);
      else expect(question.value(value, 0) === encoded, `${JSON.stringify(task)}: ${JSON.stringify(value)} is ${question.value(value, 0)}, not ${encoded}`);
    }
  }

  const ratios = [];
  for (const run of vectors.prices) {
    const plan = { protocol: "shuffled-check-in", population: run.crowd, colluding: 0, dropout: 0, rate: run.rate, rounds: run.rounds, delta: run.delta, minimum_batch: run.crowd };
    const price = new client.Price(plan, run.local_epsilon);
    const [central, local] = [price.epsilon(run.rounds), price.local(run.rounds)];
    expect(central >= run.certified * (1 - 1e-9) && central <= 2 * run.certified, `price ${JSON.stringify(run)}: ${central}`);
    expect(local >= run.without_shuffler * (1 - 1e-9) && local <= 1.5 * run.without_shuffler, `local price ${JSON.stringify(run)}: ${local}`);
    ratios.push([central / run.certified, local / run.without_shuffler]);
  }
  return { checked, failures, ratios };
}

if (typeof process !== "undefined" && process.argv[1]?.endsWith("vectors.mjs")) {
  const { readdirSync, readFileSync } = await import("node:fs");
  const here = new URL("../vectors/", import.meta.url);
  const files = readdirSync(here).filter((name) => name.endsWith(".json"));
  const vectors = Object.fromEntries(files.map((name) => [name.slice(0, -5), JSON.parse(readFileSync(new URL(name, here), "utf8"))]));
  const client = await import(process.argv[2] ?? new URL("../../clients/web/dpcheckin.js", import.meta.url));
  console.log(JSON.stringify(await check(client, vectors)));
}
