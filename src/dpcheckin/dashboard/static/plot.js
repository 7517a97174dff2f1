// A drawing that follows the window and the pointer: tips, lines that stand out, a target to be
// picked. It reports what is pointed at.

import { Drawing, MARGIN, node } from "./drawing.js";

export class Plot extends Drawing {
  // `describe(line, point)` gives the tip's rows; `pick(y)` is called when a height is chosen.
  constructor(svg, tip, { describe, pick = null }) {
    super(svg);
    Object.assign(this, { tip, describe, pick, picture: null, lit: null });
    new ResizeObserver(() => this.draw()).observe(svg);
    svg.addEventListener("pointermove", (event) => this.#hover(event));
    svg.addEventListener("pointerleave", () => this.#leave());
    if (pick) svg.addEventListener("click", (event) => this.#click(event));
  }

  // As `paint` takes it.
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
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.paint(this.picture, width, height, this.lit);
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
      const points = this.drawable(line);
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
      node(
        this.cursor, "circle",
        { class: `dot hue-${found.line.hue}`, cx: this.x.at(found.point.x), cy: this.y.at(found.point.y), r: 5 },
      );
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
