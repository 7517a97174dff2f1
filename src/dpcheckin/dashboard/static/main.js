// Where the page begins: fetch the tables, then hand over to the planner and the runs.

import { getJson } from "./api.js";
import { Fields } from "./fields.js";
import { Planner } from "./planner.js";
import { Runs } from "./runs.js";
import { State } from "./state.js";
import { copy, say } from "./texts.js";

const $ = (id) => document.getElementById(id);
const tables = await getJson("/api/describe");
const state = new State(tables.defaults);
const fields = new Fields($("form"), state, tables);

function view() {
  const runs = state.get("view") === "runs";
  $("planner").hidden = runs;
  $("runs").hidden = !runs;
  $("show-planner").setAttribute("aria-pressed", String(!runs));
  $("show-runs").setAttribute("aria-pressed", String(runs));
}
state.onChange(view);
view();
$("show-planner").addEventListener("click", () => state.set({ view: "planner" }));
$("show-runs").addEventListener("click", () => state.set({ view: "runs" }));
$("copy-link").addEventListener("click", async () => {
  await copy(new URL(state.link(), location.href).href);
  say("Link copied");
});
$("version").textContent = `dpcheckin ${tables.version}`;
new Planner(state, fields, tables);
new Runs(state, tables.runs);
document.documentElement.dataset.ready = "true";
