// The plot and its figures as files: PNG, SVG, CSV. Made in the browser from what is shown.

import { onSheet } from "./sheet.js";

const STYLES = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity", "paint-order",
];
const FONT = ["font-size", "font-family", "font-weight", "font-style"];
const SCALE = 2; // pixels of the PNG per pixel of the page

// The picture with its looks written into it, so that it needs no style sheet.
function svgText(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of element.matches("text, tspan") ? [...STYLES, ...FONT] : STYLES) {
      // not every program that shows SVG knows colours with a fourth part
      const [, colour, opacity] = /^rgba\((.*), ([\d.]+)\)$/.exec(style.getPropertyValue(name)) ?? [];
      to[i].setAttribute(name, colour ? `rgb(${colour})` : style.getPropertyValue(name));
      if (colour) to[i].setAttribute(`${name}-opacity`, opacity);
    }
    to[i].removeAttribute("class");
  });
  copy.removeAttribute("class");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(svg.parentElement).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

async function png(svg) {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
  [canvas.width, canvas.height] = [SCALE * width, SCALE * height];
  const context = canvas.getContext("2d");
  context.scale(SCALE, SCALE);
  context.drawImage(picture, 0, 0, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// One row a point; figures in full, and as they may be quoted: rounded to their safe side.
export function csv(axis, value, lines, points) {
  const rows = [["bound", "kind", "source", axis, value, `${value}_rounded_safely`]];
  for (const line of lines)
    for (const point of points.get(line.key) ?? []) rows.push(
      [line.name, line.kind, line.source, String(point.x), String(point.y), point.text.replaceAll(/[,%]/g, "")]
    );
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

// A picture of a sheet (see `sheet`), as PNG or SVG.
export async function savePicture(name, as, sheet) {
  if (as === "svg") save(`${name}.svg`, await onSheet(sheet, svgText), "image/svg+xml");
  else save(`${name}.png`, await onSheet(sheet, png), "image/png");
}

export function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
