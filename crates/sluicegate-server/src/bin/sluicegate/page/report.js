// Draws the report that the page carries. `parts.js` and `picture.js` come before it. Paths and keys are chosen by clients, so
// text is only ever set as textContent.
"use strict";

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const report = JSON.parse(id("report").textContent);

document.title = report.heading;
id("heading").textContent = report.heading;
id("summary").textContent = report.summary;
id("tiles").append(...report.tiles.map(tile));
id("time").append(...traffic(report.traffic));
id("week").append(...week(report.traffic));
id("policies").append(...report.policies.map(policy));
id("how").append(...report.how.map((line) => make("li", line)));
if (report.rules) {
  id("rules").hidden = false;
  id("rules").querySelector("pre").textContent = report.rules;
}
if (report.pictures.length) {
  id("clients").hidden = false;
  const select = id("windows").querySelector("select");
  for (const [place, of] of report.pictures.entries()) select.append(new Option(inWords(of.window), place));
  const show = () => id("picture").replaceChildren(picture(report.pictures[select.value]));
  select.value = report.first_picture;
  select.addEventListener("change", show);
  show();
}

function tile([name, value, kind]) {
  const one = make("div");
  one.append(make("dt", name), make("dd", value, kind));
  return one;
}

function traffic(of) {
  const served = of.requests.map((all, at) => Math.max(0, all - of.refused[at]));
  const ends = make("p", undefined, "ends");
  ends.append(make("span", at(of.first)), make("span", at(of.first + of.seconds * of.requests.length)));
  const key = make("p", undefined, "key");
  key.append(make("span", undefined, "line yes"), " " + of.served_words + " ", make("span", undefined, "line no"), " " + of.refused_words);
  const high = Math.max(0, ...of.requests);
  const most = make("p", "Each point is " + span(of.seconds) + ". The busiest has " + count(high) + " requests.", "note");
  return [lines(served, of.refused, of.requests.length, span(of.seconds)), ends, key, most];
}

function week(of) {
  const means = of.hours.map((requests, hour) => (of.covered[hour] ? requests / of.covered[hour] : null));
  const most = Math.max(1e-9, ...means);
  const grid = make("div", undefined, "week");
  grid.setAttribute("role", "img");
  grid.append(make("span"));
  for (let hour = 0; hour < 24; hour++) grid.append(make("span", hour % 6 ? "" : hour));
  for (const [day, name] of DAYS.entries()) {
    grid.append(make("span", name));
    for (let hour = 0; hour < 24; hour++) {
      const mean = means[24 * day + hour];
      const square = make("i", undefined, mean === null ? "none" : "");
      const refused = of.hours_refused[24 * day + hour];
      square.title = name + " " + hour + ":00: " + (mean === null ? "not in the log" : rate(mean) + " requests an hour" + (refused ? ", " + percent(refused / of.hours[24 * day + hour]) + " " + of.refused_words : ""));
      const fill = make("b");
      fill.style.opacity = mean === null ? 0 : mean / most;
      square.append(fill);
      grid.append(square);
    }
  }
  const busiest = means.indexOf(Math.max(...means));
  const text = "The busiest hour is " + DAYS[Math.floor(busiest / 24)] + " " + (busiest % 24) + ":00 with " + rate(means[busiest]) + " requests on average. Times are " + of.zone + ".";
  grid.setAttribute("aria-label", text);
  return [grid, make("p", text, "note")];
}

function policy(of) {
  const section = make("section", undefined, "policy");
  section.append(make("h2", of.name), make("p", of.limit + ", " + of.rule, "note"));
  const table = make("table");
  const body = make("tbody");
  const add = (name, text, kind) => body.append(row(head(name), cell(text, kind)));
  for (const [name, text] of of.facts) add(name, text);
  table.append(body);
  section.append(table);
  if (of.refused) {
    const { refused, seconds } = of.over_time;
    section.append(make("h3", "Refusals"), lines([], refused, refused.length, span(seconds)));
    section.append(counted("refused most", of.who), counted("where", of.paths));
  }
  if (of.picture) {
    section.append(make("h3", "Clients by rank, and the limit"), picture(of.picture));
  }
  return section;
}

function counted(title, pairs) {
  const table = make("table");
  const top = make("thead");
  const column = make("th", "refusals", "n");
  top.append(row(make("th", title), column));
  for (const title of top.querySelectorAll("th")) title.scope = "col";
  const body = make("tbody");
  body.append(...pairs.map(([what, times]) => row(head(what), number(count(times)))));
  table.append(top, body);
  return table;
}

function at(seconds) {
  return new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

function span(seconds) {
  for (const [unit, length] of [["days", 86400], ["h", 3600], ["min", 60]]) if (seconds >= 2 * length) return amount(seconds / length) + " " + unit;
  return amount(seconds) + " s";
}
