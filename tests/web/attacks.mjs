// Attacks on the module, and the promises that it has to keep: `node attacks.mjs [MODULE [PATTERN]]` prints what came of
// each whose name the pattern matches.

import { client, identity, LIMITS, PLAN, rsa, signed, World } from "./world.mjs";

const { Real, canonical, utf8, concat, hex } = client;
const found = {};
const must = (good, what) => {
  if (!good) throw new Error(what);
};
async function test(name, call) {
  if (!new RegExp(process.argv[3] ?? "").test(name)) return;
  try {
    await call();
    found[name] = "ok";
  } catch (problem) {
    found[name] = `${problem.stack}`.slice(0, 600) || "failed";
  }
}
const puts = (world) => world.requests.filter(({ method }) => method === "PUT");
const randomizer = (changes) => ({ randomizer: { ...PLAN.randomizer, ...changes } });
const silent = (world) => must(!puts(world).length && !world.coins().size, "it took part");

const HOSTILE = {
  "a rate above the limit": [{}, { limits: { rate: 0.4 } }],
  "a local epsilon above the limit": [randomizer({ local_epsilon: new Real(4.5) })],
  "a clip above the limit": [randomizer({ clip: new Real(1.5) })],
  "a delta above the limit": [{ delta: new Real(0.01) }],
  "more epsilon than the limit": [{}, { limits: { total_epsilon: 0.1 } }],
  "a small crowd": [{ population: 50, minimum_present: 50 }, { limits: { minimum_population: 100 } }],
  "a crowd that colludes": [{ colluding: new Real(0.96) }, { limits: { minimum_population: 100 } }],
  "many rounds": [{ rounds: 9 }, { limits: { rounds: 8 } }],
  "a batch that hides nobody": [{ minimum_batch: 1 }, { issuer: true }],
  "no time for computing": [{ compute_seconds: new Real(0.01) }],
  "no cover": [{ cover: false }],
  "an issuer of the plan's own": [{ issuer: "ab".repeat(32) }],
  "no issuer": [{ issuer: undefined }, { issuer: true }],
  "losses that are not priced here": [{ dropout: new Real(0.1) }],
  "everybody asked, and few enough": [{ rate: 1, minimum_batch: 999 }],
  "an unknown randomizer": [randomizer({ name: "mystery" })],
  "a randomizer with more parameters": [randomizer({ truth: new Real(0.5) })],
  "a randomizer of another size": [randomizer({ symbols: 4 })],
  "reports of another size": [randomizer({ dimension: 2 })],
  "an epsilon that is nearly none": [randomizer({ local_epsilon: new Real(1e-9) })],
  "a question nobody knows": [{ task: { kind: "secret", about: "colour" } }],
  "a question with more in it": [{ task: { ...PLAN.task, file: "/etc/passwd" } }],
  "a question with a name twice": [{ task: { ...PLAN.task, categories: ["red", "red", "blue"] } }],
  "a topic that the owner says nothing about": [{ task: { ...PLAN.task, about: "illness" } }],
  "a topic of every object": [{ task: { ...PLAN.task, about: "constructor" } }],
  "another plan than the owner's": [{}, { config: { plan: "cd".repeat(32) } }],
};
for (const [name, [plan, more = {}]] of Object.entries(HOSTILE)) {
  await test(`refused: ${name}`, async () => {
    const world = await World.make({ plan, ...more });
    const why = await world.play(2);
    must(why instanceof client.Refused && !(why instanceof client.NotBelieved), `not refused but ${why?.stack}`);
    silent(world);
    must(world.requests.every(({ path }) => path === "/v1/plan"), "it asked for more than the plan");
  });
}
await test("the plan of these tests is one that is accepted", async () => {
  for (const issuer of [false, true]) {
    const world = await World.make({ issuer });
    must((await world.play(3)) === null, "refused");
    must(world.sent.size >= 2 && world.coins().size >= 2, "it did not take part");
  }
});

const MALFORMED = {
  "a suite that browsers lack": { suite: 2 },
  "reports that are added up": randomizer({ encoding: 1 }),
  "another protocol": { protocol: "random-check-in-averaged", rate: undefined, slots: 10, check_in_probability: new Real(0.5), minibatch: 1, ...randomizer({ encoding: 1 }) },
  "an unknown field": { extra: 1 },
  "a float for a count": { population: new Real(1000) },
  "fewer present than priced": { minimum_present: 999 },
  "everybody colludes": { colluding: new Real(0.999) },
  "a negative rate": { rate: new Real(-0.5) },
  "a rate above one": { rate: new Real(1.5) },
  "most of the round for computing": { compute_seconds: new Real(29) },
  "an upper-case nonce": { nonce: "AB".repeat(16) },
};
for (const [name, plan] of Object.entries(MALFORMED)) {
  await test(`not believed: ${name}`, async () => {
    const world = await World.make({ plan });
    must((await world.play(2)) instanceof client.NotBelieved, "believed");
    silent(world);
  });
}

// --- odd answers and forged documents: nothing is charged, nothing is sent, and the client may go on ---

const bytes = (count) => new Uint8Array(count);
const ODD = {
  "no answer": () => Promise.reject(new TypeError("failed to fetch")),
  "a page of somebody else": () => new Response("<html>"),
  "nothing": () => new Response(""),
  "more than a document has": () => new Response(bytes((1 << 20) + 1)),
  "an answer without an end": () => new Response(new ReadableStream({ pull: (to) => to.enqueue(bytes(65536)) })),
  "a packed answer": () => new Response("x", { headers: { "content-encoding": "br" } }),
  "an error of no kind": () => new Response("{}", { status: 500 }),
  "a problem of no kind": () => new Response('{"type":5}', { status: 404 }),
  "a number": () => new Response("7"),
};
for (const path of ["/v1/plan", "/v1/round", "/v1/model/", "/v1/void"]) {
  for (const [name, answer] of Object.entries(ODD)) {
    await test(`${path}: ${name}`, async () => {
      const world = await World.make();
      world.answers[path] = answer;
      if (path === "/v1/void") {
        await world.play(2);
        must(world.coins().size <= 1 && puts(world).length <= 1, "it went on although void rounds could not be read");
        return;
      }
      await world.play(2);
      silent(world);
    });
  }
}
await test("report: odd answers lose nothing but the report", async () => {
  for (const answer of Object.values(ODD)) {
    const world = await World.make();
    world.answers["/v1/rounds/"] = answer;
    await world.play(1);
    must(world.coins().size === 1, "not charged");
  }
});

const stranger = await identity();
const other = await World.make({ plan: { nonce: "11".repeat(16) } });
const FORGED = {
  "signed by a stranger": (world) => world.announced({}, stranger),
  "signed by the shuffler": (world) => world.announced({}, world.shuffler),
  "that ends before it begins": (world) => world.announced({ closes: new Real(1) }),
  "with a key nobody announced": (world) => world.announced({ key: "00".repeat(8) }),
  "with a field more": (world) => world.announced({ coin: true }),
  "with a token key in a plan without an issuer": (world) => world.announced({ token_key: "ab".repeat(256) }),
  "with another's signature": async (world) => concat((await world.announced({ opens: new Real(999) })).subarray(0, -131), (await world.announced()).subarray(-131)),
  "that is written otherwise": async (world) => {
    const text = new TextDecoder().decode(await world.announced());
    return utf8(text.replace('"round":0,', '"round": 0,'));
  },
  "of another plan": (world) => world.announced({ plan: other.id }),
};
for (const [name, make] of Object.entries(FORGED)) {
  await test(`round ${name}`, async () => {
    const world = await World.make();
    world.answers["/v1/round?"] = world.answers["/v1/round"] = async (path) => (path === "/v1/round" ? new Response(await make(world)) : world.usual("shuffler.example", "PUT", path, bytes(0)));
    await world.play(1);
    silent(world);
  });
}
await test("a round again, and one from before", async () => {
  const world = await World.make();
  const opened = await world.open();
  must((await world.play(3, opened)) === null, "refused");
  const old = world.sent.size;
  world.answers["/v1/round"] = async (path) => (path === "/v1/round" ? new Response(await signed({ type: "round", plan: world.id, round: 0, model: hex(await client.digest(world.model())), key: world.keyId, opens: new Real(world.time), closes: new Real(world.time + 30) }, world.analyzer)) : world.usual("shuffler.example", "PUT", path, bytes(0)));
  const why = await world.play(4, opened);
  must(why instanceof client.NotBelieved && world.sent.size === old, `believed: ${why}`);
});
await test("the plan of a stranger, and one in which a key is a stranger's", async () => {
  for (const [plan, key] of [[stranger, null], [null, stranger]]) {
    const world = await World.make();
    const pages = { plan: plan ?? world.analyzer, key: key ?? world.analyzer };
    const document = { type: "key", plan: world.id, suite: 1, key: hex(world.publicKey), from_round: 0 };
    world.answers["/v1/plan"] = async () => new Response(concat(utf8('{"keys":['), await signed(document, pages.key), utf8('],"plan":'), await signed(world.plan, pages.plan), utf8("}")));
    must((await world.play(1)) instanceof client.NotBelieved, "believed");
    silent(world);
  }
});
await test("void rounds that somebody else states change nothing", async () => {
  const world = await World.make();
  await world.play(2);
  const before = (await world.open()).ledger.totals().epsilon;
  for (const by of [stranger, world.analyzer]) {
    world.answers["/v1/void"] = async () => new Response(await signed({ type: "void", plan: world.id, rounds: [0, 1] }, by));
    must((await world.play(3)) instanceof client.NotBelieved, "believed");
    must((await world.open()).ledger.totals().epsilon === before, "given back");
  }
});

// --- the issuer ---

await test("an issuer's key of one's own: neither report nor cover", async () => {
  const world = await World.make({ issuer: true });
  const own = await rsa();
  world.answers["/v1/plans/"] = async (path, body) => {
    const honest = world.keys;
    world.keys = [own, own, own, own];
    const answer = await world.usualIssuer(path, body);
    world.keys = honest;
    return answer;
  };
  must((await world.play(2)) === null, "it gave up");
  silent(world);
  must(world.last.counts.without_token >= 1, "it does not say so");
});
await test("wrong, missing and foreign signatures are no tokens", async () => {
  const answers = [
    async (world, path, body) => (path.endsWith("/keys") ? world.usualIssuer(path, body) : new Response(canonical({ signatures: world.keys.map(() => null) }))),
    async (world, path, body) => (path.endsWith("/keys") ? world.usualIssuer(path, body) : new Response(canonical({ signatures: world.keys.map(() => "01".repeat(256)) }))),
    async (world, path, body) => (path.endsWith("/keys") ? world.usualIssuer(path, body) : new Response(canonical({ signatures: [] }))),
    async (world) => new Response(await signed({ type: "token-keys", plan: world.id, first: 0, keys: world.keys.map((key) => key.modulus) }, stranger)),
    async (world) => new Response(await signed({ type: "token-keys", plan: other.id, first: 0, keys: world.keys.map((key) => key.modulus) }, world.issuer)),
    async (world) => new Response(await signed({ type: "token-keys", plan: world.id, first: 0, keys: world.keys.map(() => "02".repeat(256)) }, world.issuer)),
    async () => new Response("<html>", { status: 502 }),
  ];
  for (const [i, answer] of answers.entries()) {
    const world = await World.make({ issuer: true });
    world.answers["/v1/plans/"] = (path, body) => answer(world, path, body);
    must((await world.play(1)) === null, `answer ${i}: gave up`);
    silent(world);
  }
});
await test("a ledger that was cleared is found out, and no token is used", async () => {
  const world = await World.make({ issuer: true });
  let most = 0;
  const said = [];
  world.answers["/v1/plans/"] = (path, body) => {
    if (path.endsWith("/keys")) return world.usualIssuer(path, body);
    const { taken } = JSON.parse(new TextDecoder().decode(body));
    said.push(taken);
    if (taken < most) return new Response(JSON.stringify({ type: "urn:dpcheckin:problem:older-copy" }), { status: 409 });
    most = taken;
    return world.usualIssuer(path, body);
  };
  await world.play(2);
  const held = new Map(world.storage.kept);
  await world.play(3, await world.open());
  must(said[0] === 0 && most === 2, `it says ${said}`);
  for (const kept of [new Map(), new Map([...held].filter(([key]) => !key.startsWith('["round"')))]) {
    world.storage.kept = kept;
    const before = puts(world).length;
    world.time = 1120;
    await world.play(4, await world.open());
    must(puts(world).length === before, "it took part");
  }
});
await test("a plan that is declined is not the last one", async () => {
  const world = await World.make({ limits: { rate: 0.4 } });
  const next = await World.make({ plan: { rate: new Real(0.3), nonce: "33".repeat(16) } });
  Object.assign(next, { analyzer: world.analyzer, shuffler: world.shuffler, config: world.config });
  const opened = await world.open();
  const stop = new AbortController();
  let looks = 0;
  opened.outside.fetch = (...asked) => {
    if (++looks === 4) next.time = world.time;
    if (next.sent.size) stop.abort(new Error("enough"));
    next.time = world.time;
    return looks > 3 ? next.fetch(...asked) : world.fetch(...asked);
  };
  await opened.run(stop.signal);
  must(next.sent.size === 1 && !world.sent.size, `${world.sent.size} and ${next.sent.size}; ${opened.status}`);
});
await test("tokens are fetched in advance, and asked for in the same words", async () => {
  const asked = [];
  for (const seed of [1, 2]) {
    const world = await World.make({ issuer: true, seed });
    await world.play(3);
    const order = world.requests.map(({ method, path }) => `${method} ${path.split("/").at(-1)}`);
    must(order.indexOf("POST tokens") < order.findIndex((one) => one.endsWith("round")), "a round was looked at first");
    asked.push(world);
  }
  const world = await World.make({ issuer: true });
  const bodies = [];
  world.answers["/v1/plans/"] = (path, body) => {
    if (body) bodies.push(hex(body));
    return path.endsWith("/keys") ? world.usualIssuer(path, body) : Promise.reject(new TypeError("lost"));
  };
  await world.play(1);
  await world.play(1, await world.open());
  world.time = 1000;
  await world.play(1, await world.open());
  must(bodies.length >= 2 && new Set(bodies).size === 1, `${bodies.length} requests in ${new Set(bodies).size} wordings`);
});

// --- what a client does never depends on its data ---

const trap = { toString() { throw new Error("called"); }, valueOf() { throw new Error("called"); } };
const VALUES = { fits: "red", "fits not": "mauve", "is no text": 17, "is nothing": null, "is an object": { a: 1 }, "is a trap": trap, "is a symbol": Symbol("x"), "is long": "x".repeat(1e6), "is a function": () => { throw new Error("called"); }, "is no number": NaN, "is nearly a number": "1".repeat(60) + "x" };
const TASKS = [
  { task: PLAN.task },
  { task: { kind: "mean", low: new Real(0), high: new Real(1), about: "colour", answers: 10 }, ...randomizer({ name: "levels", steps: 4, symbols: undefined, dimension: 2 }) },
  { task: { kind: "count", about: "colour", answers: 10 }, ...randomizer({ symbols: 2 }) },
  { task: { kind: "quantiles", low: 0, high: 9, bins: 16, about: "colour", answers: 10 }, ...randomizer({ name: "tree", leaves: 16, branching: 4, symbols: undefined, dimension: 2 }) },
  { task: { kind: "heavy-hitters", bits: 20, alphabet: "abcder", about: "colour", answers: 10 }, ...randomizer({ name: "hash", buckets: 64, functions: 1024, salt: "", symbols: undefined, dimension: 3 }) },
  { task: { kind: "heavy-hitters", bits: 64, about: "colour", answers: 10 }, ...randomizer({ name: "hash", buckets: 64, functions: 1024, salt: "", symbols: undefined, dimension: 3 }) },
];
await test("no value takes longer than the shortest allowance", () => {
  const strange = ["1".repeat(20) + "x", "1_".repeat(1e6) + "x", " ".repeat(1e6) + "x", "x".repeat(1e6), "9".repeat(1e6), "0." + "1".repeat(1e6) + "e"];
  const letters = Array.from({ length: 2e5 }, (_, i) => String.fromCodePoint(0x20000 + (i % 0xf0000))).join("");
  const more = [{ kind: "heavy-hitters", bits: 64, alphabet: letters }, { kind: "distribution", low: 0, high: 1, bins: 16384 }, { kind: "histogram", categories: [...letters] }];
  const fitting = { mean: { name: "levels" }, quantiles: { name: "tree", symbols: 16 }, distribution: { name: "tree", symbols: 16384 }, count: { name: "dary", symbols: 2 }, "heavy-hitters": { name: "hash" } };
  for (const task of [...TASKS.map((one) => one.task), ...more]) {
    const question = client.readQuestion({ task, rounds: 8 }, fitting[task.kind] ?? { name: "dary", symbols: task.categories.length });
    for (const value of strange) {
      const before = process.cpuUsage();
      question.value(value, 0);
      const { user, system } = process.cpuUsage(before);
      must(user + system < 50e3, `${task.kind}: ${value.slice(0, 9)}… took ${user + system} microseconds`);
    }
  }
});
await test("a round takes as long to compute for heads as for tails, whatever model it names", async () => {
  const took = { true: [], false: [] };
  const many = Object.fromEntries(Array.from({ length: 10000 }, (_, i) => [`k${i}`, i]));
  const large = utf8(canonical({ type: "question", index: 0, ...many }));
  for (let seed = 1; seed <= 4; seed++) {
    const world = await World.make({ seed, limits: { total_epsilon: 30 } });
    world.model = () => large;
    const opened = await world.open();
    for (let round = 0; round < 4; round++) {
      world.time = 1000 + 40 * round;
      const before = process.cpuUsage();
      await opened.once();
      const { user, system } = process.cpuUsage(before);
      took[world.coins().get(round)].push(user + system);
    }
  }
  const [heads, tails] = [took.true, took.false].map((all) => all.sort((a, b) => a - b)[all.length >> 1]);
  must(took.true.length > 5 && took.false.length > 5 && tails > heads / 1.5 && heads > tails / 1.5, `${heads} and ${tails} microseconds`);
});
await test("a value that does not fit changes nothing that anybody sees", async () => {
  for (const [which, plan] of TASKS.entries()) {
    const clean = plan.randomizer ? { ...plan, randomizer: Object.fromEntries(Object.entries(plan.randomizer).filter(([, value]) => value !== undefined)) } : plan;
    if (plan.task.kind === "count") clean.randomizer = { ...PLAN.randomizer, symbols: 2 };
    let usual = null;
    for (const [name, value] of Object.entries(VALUES)) {
      const world = await World.make({ plan: clean, config: { answers: { colour: value } }, seed: 8, limits: { total_epsilon: 30 } });
      const why = await world.play(6);
      must(why === null, `question ${which}, a value that ${name}: ${why}`);
      const heads = [...world.coins()].map(([, coin]) => coin);
      must(heads.includes(true) && heads.includes(false), "the seed shows only one side of the coin");
      for (const [round, bodies] of world.sent) must(parseInt(bodies[0].slice(12, 14), 16) === Number(world.coins().get(round)), "a cover for a report, or the other way");
      const seen = JSON.stringify(world.requests.map(({ method, path, size, names }) => [method, path.replace(/[0-9a-f]{64}/, ""), size, names]));
      usual ??= seen;
      must(seen === usual, `question ${which}: other requests where the value ${name}`);
    }
  }
});
await test("a neutral report is written down before the data are looked at, and leaves if they fail", async () => {
  let looked = 0;
  for (let seed = 0; seed < 12; seed++) {
    const world = await World.make({ seed });
    const opened = await world.open();
    let outbox = null;
    world.storage.after = () => (outbox ??= world.storage.kept.get('["kept","outbox"]')?.envelope);
    const colour = () => { // that there is an answer is asked before any round; what it is, only after heads
      if (!world.requests.some(({ path }) => path.startsWith("/v1/model/"))) return "red";
      must(outbox && world.coins().get(0) === true, "the data were looked at first");
      looked++;
      throw new Error("data");
    };
    opened.config.answers = Object.defineProperty({}, "colour", { get: colour, enumerable: true });
    must((await world.play(1, opened)) === null, "it gave up");
    must(world.sent.get(0)[0] === hex(outbox), "another envelope than the one written down");
    must(parseInt(hex(outbox).slice(12, 14), 16) === Number(world.coins().get(0)), "a cover for a report, or the other way");
  }
  must(looked > 2 && looked < 10, `${looked} of 12 looked`);
});
await test("moments do not depend on the coin, and leave the allowance and the margin", async () => {
  const moments = { true: [], false: [] };
  for (let seed = 0; seed < 60; seed++) {
    const world = await World.make({ seed });
    await world.play(1);
    const { at } = puts(world)[0];
    must(at >= 1009 && at <= 1030 - 4.5, `sent at ${at}`);
    moments[world.coins().get(0)].push(at);
  }
  const [heads, tails] = [moments.true, moments.false];
  must(heads.length > 15 && tails.length > 15, "an uneven coin");
  let wins = 0;
  for (const one of heads) for (const two of tails) wins += one > two ? 1 : one === two ? 0.5 : 0;
  const area = wins / heads.length / tails.length;
  must(Math.abs(area - 0.5) < 0.22, `area ${area}`); // 3 deviations of 30 against 30
});

// --- ledgers ---

await test("a tab that is closed at any moment has paid before it sent, and sends the same bytes", async () => {
  let kill = 0;
  for (; ; kill++) {
    const world = await World.make({ seed: 3, issuer: kill % 4 === 0 });
    let count = 0;
    const strike = () => { // from that moment on nothing is done any more
      if (count++ >= kill) throw new Error("killed");
    };
    const charged = () => [...world.storage.kept.keys()].filter((key) => key.startsWith('["round"')).length;
    world.effect = (what) => {
      if (what.startsWith("PUT")) must(charged() > world.sent.size - 1, "sent before it was written down");
      strike();
    };
    [world.storage.before, world.storage.after] = [strike, strike];
    await world.play(3);
    if (count <= kill) break;
    const first = world.coins();
    [world.effect, world.storage.before, world.storage.after] = [null, () => {}, () => {}];
    await world.play(3, await world.open());
    for (const [round, bodies] of world.sent) must(new Set(bodies).size === 1, `kill ${kill}: round ${round} has two envelopes`);
    for (const [round, heads] of first) must(world.coins().get(round) === heads, `kill ${kill}: a coin fell twice`);
    must([...world.sent.keys()].every((round) => world.coins().has(round)), `kill ${kill}: a round that nobody paid for`);
    const { ledger } = await world.open();
    must(ledger.of(world.id).coins.size === world.coins().size && ledger.totals().epsilon > 0, `kill ${kill}: a wrong total`);
  }
  must(kill > 40, `only ${kill} moments`);
  found["moments of being closed"] = kill;
});
await test("two tabs cannot both take part in a round", async () => {
  const world = await World.make();
  const [one, two] = [await world.open(), await world.open()];
  await world.play(1, one);
  world.time = 1000;
  await two.once().catch(() => {});
  must(new Set(world.sent.get(0)).size === 1, "two envelopes");
  must(world.coins().size === 1, "two coins");
});
await test("a client without locks does not run", async () => {
  const world = await World.make();
  const opened = await world.open({ locks: null });
  const why = await opened.run().then(() => null, (problem) => problem);
  must(why instanceof client.Refused, `ran: ${why}`);
});
await test("void rounds are given back in the figure that trusts the shuffler, and only there", async () => {
  const world = await World.make({ limits: { total_epsilon: 30 } });
  await world.play(2);
  const honest = await World.make({ limits: { total_epsilon: 30 } });
  await Promise.all([world.play(2), honest.play(3)]);
  world.void = [0];
  await world.play(3);
  const [after, full] = [(await world.open()).ledger, (await honest.open()).ledger];
  must(after.roundsOf(world.id) === world.coins().size - 1 && after.totals().epsilon < full.totals().epsilon, "not given back");
  must(after.totals().local_epsilon === full.totals().local_epsilon && world.coins().size === honest.coins().size, "the other figure fell");
});
await test("too many void rounds in a row end it", async () => {
  const world = await World.make({ limits: { void_rounds: 3, total_epsilon: 30 }, plan: { task: { ...PLAN.task, answers: 30 } } });
  world.void = Array.from({ length: 30 }, (_, i) => i);
  const why = await world.play(12);
  must(why instanceof client.Refused && world.coins().size <= 4, `${why}`);
});
await test("a budget ends it after the same round whatever coins say", async () => {
  const ends = new Set();
  for (let seed = 0; seed < 8; seed++) {
    const world = await World.make({ seed, limits: { total_local_epsilon: 7 } });
    const why = await world.play(9);
    must(why instanceof client.Refused && /local_epsilon/.test(why.message), `${why}`);
    ends.add(world.coins().size);
  }
  must(ends.size === 1 && [...ends][0] >= 2, `after ${[...ends]} rounds`);
});
await test("so many answers and no more, and totals go over plans", async () => {
  let world = null;
  for (let seed = 0; seed < 6; seed++) {
    world = await World.make({ seed, plan: { task: { ...PLAN.task, answers: 2 } } });
    must((await world.play(5)) === null, "refused");
    must(world.coins().size === 2, `${world.coins().size} rounds`);
  }
  const spent = (await world.open()).ledger.totals().epsilon;
  const next = await World.make({ plan: { nonce: "22".repeat(16) } });
  next.storage.kept = world.storage.kept;
  await next.play(2);
  const totals = (await next.open()).ledger.totals();
  must(totals.epsilon > spent * 1.2 && (await next.open()).ledger.plans.size === 2, "a new plan began a new budget");
});
await test("the owner's word ends it, and holds in the next visit", async () => {
  const world = await World.make();
  const opened = await world.open();
  await world.play(1, opened);
  await opened.stop();
  const asked = world.requests.length;
  await opened.run();
  await (await world.open()).run();
  must(world.requests.length === asked, "it asked again");
  await opened.resume();
  must(!(await world.open()).state().stopped, "it stays stopped");
});
await test("a configuration is read strictly", async () => {
  const good = (await World.make()).config;
  client.readConfig(good);
  const bad = [
    { limits: { ...LIMITS, rat: 1 } }, { limits: { ...LIMITS, rate: 0 } }, { limits: { ...LIMITS, rate: NaN } }, { limits: { ...LIMITS, total_epsilon: "1" } },
    { limits: Object.fromEntries(Object.entries(LIMITS).filter(([name]) => name !== "clip")) }, { analyzer: {} }, { analyzer: { identity: "ab" } }, { shuffler: { address: "http://shuffler.example", token: "t" } },
    { shuffler: { token: "t" } }, { issuer: { address: "https://a.example", token: "t" } }, { extra: 1 }, { poll_seconds: -1 }, { answers: "red" },
  ];
  for (const one of bad) {
    let refused = false;
    try {
      client.readConfig({ ...good, ...one });
    } catch (problem) {
      refused = problem instanceof client.Malformed && /^(limits|analyzer|shuffler|issuer|configuration|poll_seconds|answers)/.test(problem.message);
    }
    must(refused, JSON.stringify(one));
  }
});
await test("one report costs little", async () => {
  const world = await World.make({ issuer: true });
  const plan = { ...client.readDocument("plan", client.parseCanonical(utf8(canonical(world.plan)))), id: world.id };
  const made = client.makeRandomizer(plan.randomizer);
  const key = { raw: world.publicKey, keyId: world.keyId };
  const announced = { round: 0, model: "00".repeat(32) };
  const one = () => client.sealReport(plan, key, announced, made.encoded(1, new client.Chance()), bytes(288));
  for (let i = 0; i < 20; i++) await one();
  const before = process.cpuUsage();
  for (let i = 0; i < 200; i++) await one();
  const { user, system } = process.cpuUsage(before);
  found["milliseconds of a report"] = (user + system) / 200e3;
});

console.log(JSON.stringify(found));
