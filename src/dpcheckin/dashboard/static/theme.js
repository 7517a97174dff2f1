// Light, dark, or what the system says. Runs before the page is drawn, so that nothing flashes.
"use strict";

(() => {
  const choices = ["auto", "light", "dark"];
  const kept = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // storage may be forbidden: the switch then lasts as long as the page
    }
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${theme}`;
  };
  apply(choices.includes(kept()) ? kept() : "auto");
  addEventListener("DOMContentLoaded", () => {
    apply(document.documentElement.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      const now = document.documentElement.dataset.theme;
      const next = choices[(choices.indexOf(now) + 1) % choices.length];
      try {
        localStorage.setItem("theme", next);
      } catch {
        /* see above */
      }
      apply(next);
    });
  });
})();
