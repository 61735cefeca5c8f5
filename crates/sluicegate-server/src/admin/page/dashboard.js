// Shows what /v1/status says, once a second. Text from the server is only ever set as textContent, never as markup.
// `parts.js` comes before it.
"use strict";

const EVERY = 1000; // milliseconds
const SLOWEST = 15000; // milliseconds between two attempts while the server is away
const REDRAWN = 10000; // milliseconds between two pictures of limits
const SERVED = ["admitted", "waited", "degraded", "shadowed", "uncounted"];

let wait = EVERY;
let timer;
let asking = false;
let answered = 0;
let drawn_at = 0;
const shown = new Map();
const dragged = new Map(); // where the line of a limit was put

async function look() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  try {
    const answer = await fetch("/v1/status", { credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (answer.status === 401) return signIn();
    if (!answer.ok) throw new Error("the server answered " + answer.status);
    show(await answer.json());
    id("leave").hidden = !answer.headers.has("sluicegate-session");
    answered = Date.now();
    wait = EVERY;
    say("live", "live");
  } catch (error) {
    wait = Math.min(2 * wait, SLOWEST);
    const since = answered ? ": shown is " + Math.round((Date.now() - answered) / 1000) + " s old" : "";
    say("lost", "no answer" + since);
  } finally {
    asking = false;
  }
  // A page that nobody sees asks nothing.
  if (!document.hidden) timer = setTimeout(look, wait);
}

function signIn() {
  say("waiting", "needs its token");
  id("board").hidden = true;
  id("leave").hidden = true;
  id("login").hidden = false;
  id("token").focus();
}

async function session(event) {
  event.preventDefault();
  // Header fields hold bytes.
  const token = String.fromCharCode(...new TextEncoder().encode(id("token").value));
  let answer;
  try {
    answer = await fetch("/session", { method: "POST", headers: { authorization: "Bearer " + token } });
  } catch (error) {
    id("wrong").textContent = "The server does not answer.";
    return;
  }
  id("token").value = "";
  id("wrong").textContent = answer.ok ? "" : "That is not the token.";
  if (!answer.ok) return;
  id("login").hidden = true;
  look();
}

async function leave() {
  await fetch("/session", { method: "DELETE" });
  clearTimeout(timer);
  signIn();
}

function say(state, text) {
  const line = id("state");
  if (line.dataset.state === state && state === "live") return;
  line.dataset.state = state;
  line.textContent = text;
}

function show(status) {
  id("login").hidden = true;
  id("board").hidden = false;
  const about = status.version + ", up " + span(status.uptime_seconds) + (status.stopping ? ", stopping" : "");
  id("version").textContent = about;
  tiles(status);
  part("hours", status.minutes, () => hours(status.minutes));
  part("policies", status.policies, () => policies(status));
  part("refused", status.refused, () => refused(status));
  part("latency", [status.latency, status.failed_calls], () => [...latency(status.latency), ...failed(status.failed_calls)]);
  part("storage", status.store, () => storage(status.store));
  part("capacity", status.capacity, () => capacity(status.capacity));
  part("members", status.capacity, () => members(status.capacity));
  part("files", status.pending, () => files(status.pending));
  part("force", status.in_force, () => force(status));
  pictures();
}

// Draws the pictures of limits, while they are open and nobody holds a line.
async function pictures() {
  const is_due = id("right").open && Date.now() - drawn_at >= REDRAWN;
  if (!is_due || id("pictures").contains(document.activeElement)) return;
  drawn_at = Date.now();
  try {
    const answer = await fetch("/v1/peaks", { credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (answer.ok && !id("pictures").contains(document.activeElement)) id("pictures").replaceChildren(...right(await answer.json()));
  } catch (error) {
    // The line above says that the server is away.
  }
}

function right(limits) {
  if (!limits.length) return [make("p", "No decision yet.", "none")];
  return limits.flatMap((of) => {
    const note = [of.limit];
    if (of.one_in > 1) note.push("1 key in " + count(of.one_in) + " is followed, so a share of keys is right within " + percent(0.98 / Math.sqrt(of.followed)) + " with a certainty of 95 %");
    if (of.missed) note.push(count(of.missed) + " requests were not counted, because threads met");
    const limit = dragged.get(of.limit) || of.count;
    const figure = picture({ clients: "keys", window: of.window, limit, steps: of.steps }, (to) => dragged.set(of.limit, to));
    return [make("h3", of.policy), make("p", note.join("; "), "note"), figure];
  });
}

// Draws a part again only if what it shows has changed, so that text can be selected.
function part(name, data, draw) {
  const text = JSON.stringify(data);
  if (shown.get(name) === text) return;
  shown.set(name, text);
  id(name).replaceChildren(...draw());
}

function tiles(status) {
  // Each request once. Policies count it once for each limit.
  const now = (what) => rate((status.requests[what] || { per_second: 0 }).per_second);
  id("served").textContent = now("served");
  id("refusing").textContent = now("refused");
  id("failing").textContent = now("failed");
  id("p99").textContent = time(status.latency.p99_us);
  const store = id("store");
  store.textContent = status.store.kind + (status.store.breaker === "open" ? ": away" : "");
  store.className = status.store.breaker === "open" ? "no" : "";
}

function serving(policy) {
  return verdicts(policy, (name) => SERVED.includes(name));
}

function refusing(policy) {
  return verdicts(policy, (name) => !SERVED.includes(name));
}

function verdicts(policy, counts) {
  return Object.entries(policy.verdicts).filter(([name]) => counts(name)).reduce((all, [, rate]) => all + rate.per_second, 0);
}

function policies(status) {
  if (!status.counting) return [nothing(5, "This server shows no metrics, so decisions are not counted.")];
  if (!status.policies.length) return [nothing(5, "No decision yet.")];
  return status.policies.map((policy) => {
    const line = make("td");
    line.append(spark(policy));
    const totals = Object.entries(policy.verdicts).map(([name, rate]) => name + " " + count(rate.total)).join(", ");
    const name = head(policy.policy);
    for (const words of [...policy.limits, policy.rule]) if (words) name.append(make("div", words, "note"));
    return row(name, line, number(rate(serving(policy))),
      number(rate(refusing(policy)), refusing(policy) > 0 ? "no" : ""), cell(totals, "wide note"));
  });
}

function refused(status) {
  const says = {
    digests: "Keys are shown as digests ($..), which tell keys apart and mean nothing elsewhere. Start the server with --show-keys to see keys; long ones stay digests (#..).",
    shown: "Keys may be addresses or credentials. A key that begins with # was too long to be kept: this is its digest.",
    unknown: "This server does not note refused keys.",
  };
  id("keys").textContent = says[status.keys] || "";
  const rows = status.refused.flatMap((of) => of.keys.map((key) => ({ ...key, policy: of.policy })));
  rows.sort((one, other) => other.at_most - one.at_most);
  if (!rows.length) return [nothing(3, "Nobody.")];
  return rows.slice(0, 20).map((key) => {
    const times = key.at_least === key.at_most ? count(key.at_most) : count(key.at_least) + " to " + count(key.at_most);
    return row(head(key.who), cell(key.policy), number(times));
  });
}

function latency(of) {
  if (!of.measured) return [nothing(2, "Nothing measured.")];
  const rows = [["half within", of.p50_us], ["9 in 10 within", of.p90_us], ["99 in 100 within", of.p99_us], ["longest", of.max_us]];
  return rows.map(([name, us]) => row(head(name), number(time(us))));
}

function failed(of) {
  if (!of || !of.total) return [];
  const name = head("calls that failed before a decision");
  if (of.last) name.append(make("div", "the last: " + of.last, "note"));
  return [row(name, number(count(of.total), "no"))];
}

function storage(of) {
  const rows = [["kind", of.kind]];
  const add = (name, value, show) => { if (value !== null && value !== undefined) rows.push([name, show(value)]); };
  add("keys, about", of.keys, (keys) => count(keys) + " of " + count(of.room));
  add("not counted, because it was full", of.turned_away, count);
  add("breaker", of.breaker, String);
  add("times the breaker opened", of.breaker_openings, count);
  add("connections made", of.connections, count);
  add("leased tokens in hand", of.tokens_in_hand, count);
  add("decided without Redis", of.decided_here, count);
  add("leased tokens that expired", of.expired, count);
  add("longest call", of.longest_call_us, time);
  for (const [kind, errors] of Object.entries(of.errors)) if (errors) rows.push(["errors: " + kind.replaceAll("_", " "), count(errors)]);
  return rows.map(([name, value]) => row(head(name), number(value, value === "open" ? "no" : "")));
}

function capacity(of) {
  if (!of.resources.length) return [nothing(4, "No capacity is leased here.")];
  return of.resources.flatMap((resource) => {
    const first = row(head(resource.resource), number(amount(resource.wants)), number(amount(resource.granted)), number(amount(resource.capacity)));
    const clients = resource.clients.map((client) => {
      const line = row(head(client.client), number(amount(client.wants)), number(amount(client.granted)), cell(""));
      line.className = "sub";
      return line;
    });
    const more = resource.more ? [nothing(4, "and " + count(resource.more) + " more clients")] : [];
    return [first, ...clients, ...more];
  });
}

function members(of) {
  id("h-members").hidden = !of.members.length;
  return of.members.map((member) => row(head(member.member), cell(member.role)));
}

function files(all) {
  if (!all.length) return [make("p", "No files.", "none")];
  return all.flatMap((file) => {
    const lines = make("ul", undefined, "lines");
    lines.append(...file.problems.map((line) => make("li", line, "no")), ...file.changes.map((line) => make("li", line, "warn")));
    if (file.more) lines.append(make("li", "and " + count(file.more) + " more"));
    if (!lines.childElementCount) lines.append(make("li", "nothing would change"));
    return [make("h3", file.files), lines];
  });
}

function force(status) {
  const more = status.in_force_more ? ["and " + count(status.in_force_more) + " more"] : [];
  return [...status.in_force, ...more].map((line) => make("li", line));
}

// Two lines, as high as the busiest second or minute.
function spark(policy) {
  return lines(policy.served, policy.refused, 60, "a second of the last minute");
}

// The last hours by the minute.
function hours(minutes) {
  const [served, refused, failed] = ["served", "refused", "failed"].map((what) => minutes[what] || []);
  const stopped = refused.map((value, at) => value + failed[at]);
  if (!served.length) return [make("p", "Nothing yet: the first minute is not over.", "none")];
  const sum = (values) => count(values.reduce((all, value) => all + value, 0));
  const text = "In the last " + count(served.length) + " min: served " + sum(served) + ", refused " + sum(refused) + ", failed " + sum(failed) + ".";
  return [lines(served, stopped, 180, "a minute of the last three hours"), make("p", text, "note")];
}

function span(seconds) {
  if (seconds < 120) return seconds + " s";
  if (seconds < 7200) return Math.floor(seconds / 60) + " min";
  return seconds < 172800 ? Math.floor(seconds / 3600) + " h" : Math.floor(seconds / 86400) + " days";
}

id("login").addEventListener("submit", session);
id("leave").addEventListener("click", leave);
id("right").addEventListener("toggle", pictures);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
look();
