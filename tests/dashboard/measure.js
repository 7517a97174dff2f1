/* Measures of how a page looks, for test_look.py: run inside the page, they return what is wrong. */
({
  // every visible element with text of its own: what it says, and its ratio to what it stands on
  contrast: () => {
    const light = (c) => {
      const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (text) => {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const ground = (element) => {
      for (let e = element; e; e = e.parentElement) {
        const found = rgba(getComputedStyle(e).backgroundColor);
        if (found[3] > 0.99) return found;
      }
      return [255, 255, 255, 1];
    };
    const out = [];
    for (const e of document.querySelectorAll("body *")) {
      const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
      const field = e.matches("input:not([type=range]):not([type=checkbox]):not([type=radio]), select");
      if ((!own && !field) || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      if (e.matches("option, .skip, title, script")) continue;
      const style = getComputedStyle(e);
      const svg = e.namespaceURI.endsWith("svg");
      const under = e.classList.contains("badge-text") ? rgba(getComputedStyle(e.previousElementSibling).fill) : ground(e);
      const [a, b] = [light(rgba(svg ? style.fill : style.color)), light(under)];
      out.push([(e.textContent || e.value || e.id).trim().slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
    }
    return out;
  },

  // visible things that cover one another without one being inside the other, and cut texts
  overlaps: () => {
    const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 0;
    const wanted = "h1, h2, label:not(:has(input)), input:not([type=checkbox], [type=radio]), select, button, .about, .problem, .chip, .figure, .sentence, .aim p, .entry, .note, pre, summary, .plot-frame, .facts div, .brand, .choices label, #runs-list label";
    const things = [...document.querySelectorAll(wanted)].filter(shown).filter((e) => !e.matches(".skip"));
    const bad = [];
    const say = (e) => (e.id || e.className || e.tagName) + ":" + (e.textContent || "").trim().slice(0, 20);
    things.forEach((a, i) => {
      const p = a.getBoundingClientRect();
      if (a.scrollWidth > a.clientWidth + 1 && a.clientWidth > 0 && !a.matches("pre, input, .plot-frame")) bad.push(["cut", say(a)]);
      for (const b of things.slice(i + 1)) {
        if (a.contains(b) || b.contains(a)) continue;
        if (a.closest(".headline") !== b.closest(".headline")) continue;  // it stays while the rest scrolls
        const q = b.getBoundingClientRect();
        const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (wide > 2 && high > 2) bad.push([say(a), say(b)]);
      }
    });
    return bad;
  },

  // texts of a plot that run into one another or out of the picture
  texts: svg => {
    const frame = svg.closest(".panel").getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
    const bad = [];
    boxes.forEach(([a, p], i) => {
      if (p.left < frame.left || p.right > frame.right) bad.push([a, "cut"]);
      for (const [b, q] of boxes.slice(i + 1))
        if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3) bad.push([a, b]);
    });
    return bad;
  },
})
