// The plan as a shell command, as Python, as JSON: three tabs and a button that copies.

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // without permission (or over plain http to another machine) the old way still works
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

let timer = 0;
export function say(text) {
  const toast = document.getElementById("said");
  toast.textContent = text;
  toast.dataset.shown = "true";
  clearTimeout(timer);
  timer = setTimeout(() => (toast.dataset.shown = "false"), 1800);
}

export class Texts {
  constructor() {
    this.tabs = [...document.querySelectorAll("#texts-tabs [role=tab]")];
    this.box = document.getElementById("text");
    this.texts = {};
    this.chosen = "shell";
    for (const tab of this.tabs) {
      tab.addEventListener("click", () => this.choose(tab.dataset.text));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = this.tabs.at((this.tabs.indexOf(tab) + step) % this.tabs.length);
        this.choose(next.dataset.text);
        next.focus();
      });
    }
    document.getElementById("copy-text").addEventListener("click", async () => {
      await copy(this.texts[this.chosen] ?? "");
      say("Copied");
    });
  }

  choose(name) {
    this.chosen = name;
    for (const tab of this.tabs) {
      tab.setAttribute("aria-selected", String(tab.dataset.text === name));
      tab.tabIndex = tab.dataset.text === name ? 0 : -1;
    }
    this.box.setAttribute("aria-labelledby", `tab-${name}`);
    this.show(this.texts);
  }

  show(texts) {
    this.texts = texts;
    this.box.firstElementChild.textContent = texts[this.chosen] ?? "";
  }
}
