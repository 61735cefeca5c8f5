// Clients by rank, with a limit as a line that can be dragged. `parts.js` comes before it.
"use strict";

// The picture of `of`: { clients, window, limit, steps }, with the window in seconds. A step is [level, clients, requests]: clients whose highest count in
// a window is at most the level, and above the one before, and requests whose number in their window is so. `changed` is told
// each new limit.
function picture(of, changed) {
  const figure = make("figure", undefined, "picture");
  if (!of.steps.length) {
    figure.append(make("p", "Nothing was counted.", "none"));
    return figure;
  }
  const clients = of.steps.reduce((all, step) => all + step[1], 0);
  const requests = of.steps.reduce((all, step) => all + step[2], 0);
  const most = of.steps.at(-1)[0];
  const levels = levelsTo(Math.max(most, of.limit || 1));
  const top = Math.log(Math.max(2, levels.at(-1) * 1.15));
  const high = (value) => 100 - (100 * Math.log(Math.max(1, value))) / top;
  const wide = (rank) => (100 * Math.log(rank + 1)) / Math.log(clients + 1);

  const plot = make("div", undefined, "plot");
  const svg = drawn("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  const area = drawn("path", { class: "yes", d: outline(100) });
  const above = drawn("path", { class: "no" });
  svg.append(area, above);
  for (let power = 1; power <= most; power *= 10) {
    const label = make("span", count(power), "tick");
    label.style.top = high(power) + "%";
    plot.append(label);
  }
  const handle = make("div", undefined, "handle");
  handle.tabIndex = 0;
  const attributes = { role: "slider", "aria-orientation": "vertical", "aria-label": "limit", "aria-valuemin": 1, "aria-valuemax": levels.at(-1) };
  for (const [name, value] of Object.entries(attributes)) handle.setAttribute(name, value);
  const says = make("output");
  plot.append(svg, handle);
  const ranks = make("p", undefined, "ranks");
  ranks.append(make("span", "the busiest of the " + of.clients), make("span", "all " + count(clients)));
  figure.append(plot, ranks, says);

  let place = 0;
  const set = (to) => {
    place = Math.min(levels.length - 1, Math.max(0, to));
    const limit = levels[place];
    const over = of.steps.filter((step) => step[0] > limit);
    const touched = over.reduce((all, step) => all + step[1], 0);
    const refused = over.reduce((all, step) => all + step[2], 0);
    handle.style.top = high(limit) + "%";
    handle.dataset.limit = count(limit);
    above.setAttribute("d", touched ? outline(high(limit)) : "");
    says.textContent = "A limit of " + count(limit) + " in " + inWords(of.window) + " would have refused " + count(touched) + " of " + count(clients) + " " + of.clients +
      " (" + percent(touched / clients) + ") at least once, and " + percent(requests ? refused / requests : 0) + " of the requests.";
    handle.setAttribute("aria-valuenow", limit);
    handle.setAttribute("aria-valuetext", says.textContent);
    if (changed) changed(limit);
  };
  // The clients with a count above this height, the busiest first.
  function outline(floor) {
    let path = "M0 " + floor;
    let rank = 0;
    for (const [level, of_level] of of.steps.toReversed()) {
      if (!of_level || high(level) >= floor) continue;
      rank += of_level;
      path += "V" + high(level).toFixed(2) + "H" + wide(rank).toFixed(2);
    }
    return path + "V" + floor + "Z";
  }

  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    handle.focus();
    event.preventDefault();
  });
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const box = plot.getBoundingClientRect();
    const value = Math.exp(top * (1 - (event.clientY - box.top) / box.height));
    set(nearest(levels, value));
  });
  const keys = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
  handle.addEventListener("keydown", (event) => {
    const by = keys[event.key];
    if (by === undefined) return;
    event.preventDefault();
    set(place + by);
  });
  set(nearest(levels, of.limit || most));
  return figure;
}

// A window after "in".
function inWords(seconds) {
  for (const [one, many, length] of [["a day", "days", 86400], ["an hour", "hours", 3600], ["a minute", "minutes", 60], ["a second", "seconds", 1]]) {
    if (seconds >= length && seconds % length === 0) return seconds === length ? one : count(seconds / length) + " " + many;
  }
  return seconds + " s";
}

// Numbers that people choose as limits. What a limit of one of them touches is exact.
function levelsTo(most) {
  const levels = [];
  for (let level = 1; ; level += level < 100 ? 1 : 10 ** Math.floor(Math.log10(level) + 1e-9) / 20) {
    levels.push(level);
    if (level >= most) return levels;
  }
}

function nearest(levels, value) {
  const above = levels.findIndex((level) => level >= value);
  if (above < 0) return levels.length - 1;
  return above > 0 && value - levels[above - 1] < levels[above] - value ? above - 1 : above;
}

function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "less than 0.01 %";
  return value.toLocaleString("en", { maximumFractionDigits: value < 1 ? 2 : 1 }) + " %";
}
