// Which buttons can act: those that need a plan with an answer, every line of its plot or the curves
// of an attacker wait for it. A button says what it needs in `data-needs`.

const ready = { nothing: true, plan: false, lines: false, tradeoff: false };
const MISSING = {
  plan: "There is no answer about this plan", lines: "Some lines are not computed yet",
  tradeoff: "There is no curve for this plan yet",
};

export const isReady = (what) => ready[what];

export function allow(changes = {}) {
  Object.assign(ready, changes);
  for (const button of document.querySelectorAll("[data-needs]")) {
    const { needs } = button.dataset;
    button.disabled = !ready[needs];
    button.title = ready[needs] ? "" : MISSING[needs];
  }
}
