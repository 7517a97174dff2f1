// A line plot in SVG: axes, lines, a region below one of them, hover, and a target to be picked.
// It draws what it is given and reports what is pointed at; it computes no figures.

import { Scale } from "./scale.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 64, right: 16, top: 14, bottom: 44 };

function node(parent, name, attributes = {}, text = undefined) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

export class Plot {
  // `describe(line, point)` gives the tip's rows; `pick(y)` is called when a height is chosen.
  constructor(svg, tip, { describe, pick = null }) {
    Object.assign(this, { svg, tip, describe, pick, picture: null, lit: null });
    new ResizeObserver(() => this.draw()).observe(svg);
    svg.addEventListener("pointermove", (event) => this.#hover(event));
    svg.addEventListener("pointerleave", () => this.#leave());
    if (pick) svg.addEventListener("click", (event) => this.#click(event));
  }

  // picture: {x: {from, to, log, title}, y: {…}, lines: [{key, kind, hue, points, fills}],
  //           here: {x, y} or null, aimed: {y, text} or null}
  show(picture) {
    this.picture = picture;
    this.draw();
  }

  clear() {
    this.picture = this.x = this.y = null;
    this.svg.replaceChildren();
    this.tip.hidden = true;
  }

  draw() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!this.picture || width < 80) return;
    const { x, y, lines, here, aimed } = this.picture;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
    this.x = new Scale(x.from, x.to, MARGIN.left, right, x);
    this.y = new Scale(y.from, y.to, bottom, MARGIN.top, y);
    this.#axes(right, bottom, x, y);
    node(node(this.svg, "clipPath", { id: `${this.svg.id}-clip` }), "rect", {
      x: MARGIN.left, y: MARGIN.top - 4, width: right - MARGIN.left + 6, height: bottom - MARGIN.top + 8,
    });
    const inside = node(this.svg, "g", { "clip-path": `url(#${this.svg.id}-clip)` });
    for (const line of lines.filter((l) => l.fills)) this.#region(inside, line, bottom);
    for (const line of [...lines].reverse()) this.#line(inside, line);
    if (aimed) this.#aimed(inside, aimed, right);
    if (here) {
      const [px, py] = [this.x.at(here.x), this.y.at(here.y)];
      node(inside, "line", { class: "cursor", x1: px, x2: px, y1: py, y2: bottom });
      node(inside, "circle", { class: "here", cx: px, cy: py, r: 6 });
    }
    this.cursor = node(inside, "g", {});
  }

  #axes(right, bottom, x, y) {
    for (const { value, label, minor } of this.x.ticks(64)) {
      const at = this.x.at(value);
      node(this.svg, "line", { class: `grid${minor ? " minor" : ""}`, x1: at, x2: at, y1: MARGIN.top, y2: bottom });
      if (label) node(this.svg, "text", { x: Math.min(at, right - 4), y: bottom + 17, "text-anchor": "middle" }, label);
    }
    for (const { value, label, minor } of this.y.ticks(30)) {
      const at = this.y.at(value);
      node(this.svg, "line", { class: `grid${minor ? " minor" : ""}`, x1: MARGIN.left, x2: right, y1: at, y2: at });
      if (label) node(this.svg, "text", { x: MARGIN.left - 8, y: at + 4, "text-anchor": "end" }, label);
    }
    node(this.svg, "line", { class: "frame", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom });
    node(this.svg, "text", { class: "title", x: (MARGIN.left + right) / 2, y: bottom + 37, "text-anchor": "middle" }, x.title);
    const middle = (MARGIN.top + bottom) / 2;
    node(this.svg, "text", { class: "title", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, y.title);
  }

  #path(points) {
    return points.map((p, i) => `${i ? "L" : "M"}${this.x.at(p.x).toFixed(1)} ${this.y.at(p.y).toFixed(1)}`).join("");
  }

  #drawable(line) {
    return line.points.filter((p) => p.y > 0 || !this.y.log);
  }

  #region(parent, line, bottom) {
    const points = this.#drawable(line);
    if (points.length < 2) return;
    const [first, last] = [this.x.at(points[0].x), this.x.at(points.at(-1).x)];
    node(parent, "path", { class: "below", d: `${this.#path(points)}L${last} ${bottom}L${first} ${bottom}Z` });
    if (bottom - this.y.at(points.at(-1).y) > 40)
      node(parent, "text", { class: "region", x: last - 10, y: bottom - 10, "text-anchor": "end" }, last - first < 420 ? "impossible" : "no guarantee can lie here");
  }

  #line(parent, line) {
    const points = this.#drawable(line);
    const faint = this.lit && this.lit !== line.key ? " faint" : "";
    if (points.length > 1)
      node(parent, "path", { class: `line ${line.kind} hue-${line.hue}${faint}`, "data-line": line.key, d: this.#path(points) });
    if (line.dots || points.length === 1)
      for (const p of points)
        node(parent, "circle", { class: `dot hue-${line.hue}`, cx: this.x.at(p.x), cy: this.y.at(p.y), r: points.length > 60 ? 1.5 : 2.6 });
  }

  #aimed(parent, aimed, right) {
    const at = this.y.at(aimed.y);
    node(parent, "line", { class: "aimed", x1: MARGIN.left, x2: right, y1: at, y2: at });
    const width = 16 + 7.2 * aimed.text.length;
    node(parent, "rect", { class: "badge", x: right - width, y: at - 10, width, height: 20, rx: 5 });
    node(parent, "text", { class: "badge-text", x: right - width / 2, y: at + 4, "text-anchor": "middle" }, aimed.text);
  }

  // Make one line stand out (a legend entry has the focus), or none.
  light(key) {
    if (this.lit === key) return;
    this.lit = key;
    this.draw();
  }

  #nearest(px, py) {
    let best = null;
    for (const line of this.picture.lines) {
      if (line.kind === "preview") continue;
      const points = this.#drawable(line);
      points.forEach((point, i) => {
        const [x1, y1] = [this.x.at(point.x), this.y.at(point.y)];
        let gap = Math.hypot(x1 - px, y1 - py);
        const next = points[i + 1];
        if (next) {
          const [dx, dy] = [this.x.at(next.x) - x1, this.y.at(next.y) - y1];
          const t = Math.max(0, Math.min(1, ((px - x1) * dx + (py - y1) * dy) / (dx * dx + dy * dy || 1)));
          const between = Math.hypot(x1 + t * dx - px, y1 + t * dy - py);
          if (between < gap) {
            gap = between;
            if (!best || gap < best.gap) best = { line, point: t < 0.5 ? point : next, gap };
            return;
          }
        }
        if (!best || gap < best.gap) best = { line, point, gap };
      });
    }
    return best && best.gap < 26 ? best : null;
  }

  #hover(event) {
    if (!this.x) return;
    const box = this.svg.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    this.cursor.replaceChildren();
    if (px < MARGIN.left || py > box.height - MARGIN.bottom) return this.#leave();
    const found = this.#nearest(px, py);
    if (found) {
      node(this.cursor, "circle", { class: `dot hue-${found.line.hue}`, cx: this.x.at(found.point.x), cy: this.y.at(found.point.y), r: 5 });
      this.tell(this.describe(found.line, found.point), px, py);
    } else if (this.pick) {
      node(this.cursor, "line", { class: "cursor", x1: MARGIN.left, x2: box.width - MARGIN.right, y1: py, y2: py });
      this.tell([["span", `click to aim at ε = ${this.y.back(py).toPrecision(3)}`]], px, py);
    } else this.tip.hidden = true;
    return undefined;
  }

  #leave() {
    this.cursor?.replaceChildren();
    this.tip.hidden = true;
  }

  #click(event) {
    if (!this.y) return;
    const box = this.svg.getBoundingClientRect();
    const py = event.clientY - box.top;
    if (py > box.height - MARGIN.bottom || py < MARGIN.top - 4) return;
    this.pick(this.y.back(py));
  }

  // Put a tip beside a place; rows are [tag or class, text].
  tell(rows, px, py) {
    this.tip.replaceChildren(
      ...rows.map(([kind, text]) => {
        const row = document.createElement(kind === "b" ? "b" : "span");
        if (kind === "refuted") row.className = "refuted";
        row.textContent = text;
        return row;
      }),
    );
    this.tip.hidden = false;
    const frame = this.tip.parentElement.getBoundingClientRect();
    const { width, height } = this.tip.getBoundingClientRect();
    const left = px + 16 + width < frame.width ? px + 16 : Math.max(4, px - width - 12);
    const top = Math.max(4, Math.min(py - height / 2, frame.height - height - 4));
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${top}px`;
  }
}
