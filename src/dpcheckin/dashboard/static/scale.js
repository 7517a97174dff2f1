// Axes: from values to pixels and back, and where the ticks go. Knows nothing of drawing.

import { tick } from "./numbers.js";

export class Scale {
  // `whole`: only whole numbers have ticks
  constructor(from, to, start, end, { log = false, whole = false } = {}) {
    Object.assign(this, { from, to, start, end, log, whole });
  }

  // What a logarithmic axis has no place for stands at its beginning.
  at(value) {
    if (this.log && !(value > 0)) return this.start;
    const share = this.log
      ? Math.log(value / this.from) / Math.log(this.to / this.from)
      : (value - this.from) / (this.to - this.from);
    return this.start + share * (this.end - this.start);
  }

  back(pixel) {
    const share = (pixel - this.start) / (this.end - this.start);
    return this.log ? this.from * (this.to / this.from) ** share : this.from + share * (this.to - this.from);
  }

  // Ticks with a label where there is room for one; minor ones have none.
  ticks(room) {
    return this.log ? this.#decades(room) : this.#even(room);
  }

  #decades(room) {
    const [low, high] = [Math.log10(this.from), Math.log10(this.to)];
    const perDecade = Math.abs(this.end - this.start) / (high - low);
    const every = Math.max(1, Math.ceil(room / perDecade));
    const labelled = perDecade > 4.2 * room ? [1, 2, 5] : perDecade > 2.6 * room ? [1, 3] : [1];
    const found = [];
    for (let decade = Math.floor(low); decade <= Math.ceil(high); decade += 1) {
      for (let digit = 1; digit < 10; digit += 1) {
        const value = Number(`${digit}e${decade}`);
        if (value < this.from * (1 - 1e-9) || value > this.to * (1 + 1e-9)) continue;
        const named = labelled.includes(digit) && (digit > 1 || decade % every === 0);
        if (named || (digit === 1 && every < 3)) found.push({ value, label: named ? tick(value) : "", minor: digit > 1 });
        else if (perDecade > 60) found.push({ value, label: "", minor: true });
      }
    }
    return found;
  }

  #even(room) {
    const most = Math.max(2, Math.floor(Math.abs(this.end - this.start) / room));
    const raw = (this.to - this.from) / most;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const even = unit * [1, 2, 5, 10].find((m) => m * unit >= raw);
    const step = this.whole ? Math.max(even, 1) : even;
    const found = [];
    for (let i = Math.ceil(this.from / step - 1e-9); i * step <= this.to * (1 + 1e-9); i += 1)
      found.push({ value: i * step, label: tick(Number((i * step).toPrecision(12))), minor: false });
    return found;
  }
}

// Ends of a logarithmic axis: a little beyond the data, at a one, two or five.
export function outward(low, high) {
  const nice = (value, up) => {
    const unit = 10 ** Math.floor(Math.log10(value) + 1e-12);
    const steps = [1, 2, 5, 10].map((m) => m * unit);
    return up ? steps.find((s) => s >= value * (1 - 1e-9)) : steps.findLast((s) => s <= value * (1 + 1e-9));
  };
  return [nice(low, false), nice(high, true)];
}
