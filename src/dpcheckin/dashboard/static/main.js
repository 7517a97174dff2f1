// Where the page begins: fetch the tables, then hand over to the planner and the runs.

import { getJson } from "./api.js";
import { Fields } from "./fields.js";
import { Planner } from "./planner.js";
import { Runs } from "./runs.js";
import { State } from "./state.js";
import { Survey } from "./survey.js";
import { copy, say } from "./texts.js";

const $ = (id) => document.getElementById(id);
const tables = await getJson("/api/describe");
const state = new State({ ...tables.defaults, survey: "" });
const fields = new Fields($("form"), state, tables);

const VIEWS = ["planner", "survey", "runs"];
function view() {
  const now = VIEWS.includes(state.get("view")) ? state.get("view") : "planner";
  for (const name of VIEWS) {
    $(name).hidden = name !== now;
    $(`show-${name}`).setAttribute("aria-pressed", String(name === now));
  }
}
state.onChange(view);
view();
for (const name of VIEWS) $(`show-${name}`).addEventListener("click", () => state.set({ view: name }));
$("copy-link").addEventListener("click", async () => {
  await copy(new URL(state.link(), location.href).href);
  say("Link copied");
});
$("version").textContent = `dpcheckin ${tables.version}`;
new Planner(state, fields, tables);
new Runs(state, tables.runs);
new Survey($("survey"), state);
document.documentElement.dataset.ready = "true";
