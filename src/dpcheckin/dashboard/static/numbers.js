// Numbers as people read them, for what the page itself writes: values of sliders, ticks, counts.
// Privacy figures never pass through here: the server sends them as text, rounded by their kind.

export function parse(text) {
  const digits = text.replace(/[,_\s]/g, "");
  if (digits === "") return NaN;
  if (digits.endsWith("%")) return parse(digits.slice(0, -1)) / 100;
  const [above, below] = digits.split("/");
  return below === undefined ? Number(above) : Number(above) / Number(below);
}

export function grouped(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: 20 });
}

// So many of something: 1 round, 6,000 rounds.
export const counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

// A number as one would type it: 60000, 0.0333, 1e-5.
export function plain(value) {
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential().replace("e+", "e") : String(value);
}

// As shown in a field that is not being edited: thousands apart, everything else as it was typed.
export function shown(text) {
  return /^\d{4,}$/.test(text) ? grouped(Number(text)) : text;
}

// Three digits, without the noise of binary fractions: a slider's value as one would type it.
export function typed(value, whole) {
  if (whole) {
    const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(value, 1))) - 2);
    return String(Math.round(Math.round(value / unit) * unit));
  }
  return plain(Number(value.toPrecision(3)));
}

const SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const raised = (n) => (n < 0 ? "⁻" : "") + [...String(Math.abs(n))].map((d) => SUPER[d]).join("");

// A tick: plain between 0.001 and 100,000, powers of ten beyond.
export function tick(value) {
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(value)) + 1e-9);
  if (exponent >= -3 && exponent <= 5) return grouped(Number(value.toPrecision(6)));
  const digits = Number((value / 10 ** exponent).toPrecision(3));
  return (digits === 1 ? "" : `${digits}·`) + `10${raised(exponent)}`;
}
