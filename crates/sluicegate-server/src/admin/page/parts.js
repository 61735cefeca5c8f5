// What the dashboard and reports are drawn with. Text is only ever set as textContent, never as markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

const id = (name) => document.getElementById(name);

function lines(served, refused, width, unit) {
  const high = Math.max(1, ...served, ...refused);
  const label = "at most " + count(high) + " in " + unit;
  const svg = drawn("svg", { class: "spark", viewBox: "0 0 " + width + " 24", preserveAspectRatio: "none", role: "img", "aria-label": label });
  for (const [values, kind] of [[served, "yes"], [refused, "no"]]) {
    const from = width - values.length;
    const points = values.map((value, at) => from + at + "," + (23 - (22 * value) / high).toFixed(2)).join(" ");
    svg.append(drawn("polyline", { class: kind, points }));
  }
  return svg;
}

function drawn(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  return element;
}

function make(name, text, kind) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function row(...cells) {
  const line = make("tr");
  line.append(...cells);
  return line;
}

function head(text) {
  const first = make("th", text);
  first.scope = "row";
  return first;
}

const cell = (text, kind) => make("td", text, kind);
const number = (text, kind) => make("td", text, kind ? "n " + kind : "n");

function nothing(columns, text) {
  const only = make("td", text, "none");
  only.colSpan = columns;
  return row(only);
}

const count = (value) => Number(value).toLocaleString("en");
const amount = (value) => Number(value).toLocaleString("en", { maximumFractionDigits: 2 });
const rate = (value) => Number(value).toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });

function time(us) {
  if (us === null || us === undefined) return "–";
  if (us < 1000) return us + " µs";
  return us < 1e6 ? amount(us / 1000) + " ms" : amount(us / 1e6) + " s";
}

