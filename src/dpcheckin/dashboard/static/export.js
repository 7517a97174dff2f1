// The plot and its figures as files: PNG, SVG, CSV, JSON. Made in the browser from what is shown.

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity", "font-size", "font-family", "font-weight", "font-style", "paint-order"];
const SCALE = 2; // pixels of the PNG per pixel of the page

// The picture with its looks written into it, so that it needs no style sheet.
export function svgText(svg) {
  const { width, height } = svg.getBoundingClientRect();
  const copy = svg.cloneNode(true);
  const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  for (const name of [...copy.attributes].map((a) => a.name).filter((n) => n.startsWith("aria-") || ["tabindex", "role", "class", "style"].includes(n)))
    copy.removeAttribute(name);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(svg.closest(".panel")).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

export async function png(svg) {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  const { width, height } = svg.getBoundingClientRect();
  [canvas.width, canvas.height] = [SCALE * width, SCALE * height];
  const context = canvas.getContext("2d");
  context.scale(SCALE, SCALE);
  context.drawImage(picture, 0, 0, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// One row a point; figures in full, and as they may be quoted: rounded to their safe side.
export function csv(axis, lines, points) {
  const rows = [["bound", "kind", "source", axis, "epsilon", "epsilon_rounded_safely"]];
  for (const line of lines)
    for (const point of points.get(line.key) ?? []) rows.push([line.name, line.kind, line.source, String(point.x), String(point.y), point.text.replaceAll(",", "")]);
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

export function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
