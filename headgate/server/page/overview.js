// What is slow and why: problems first, then the run, then its classes.

import { lineChart } from "./chart.js";
import { element, setText } from "./dom.js";
import { count, percent, rate, seconds, some, time } from "./format.js";
import { spelled } from "./policy.js";
import { store } from "./store.js";

const HIGH = 0.7;

export function overviewView() {
  const problems = problemList();
  const starting = element("p", { class: "panel", hidden: true });
  const tiles = tileRow();
  const classes = element("div", { class: "classes" });
  const cards = new Map();
  const node = element(
    "div",
    {},
    element("h1", {}, "Overview"),
    starting, problems.node, tiles.node,
    element("h2", {}, "Classes"),
    element("p", { class: "quiet" }, "Figures of the last minute. The charts begin when this page is opened."),
    classes,
  );
  return {
    node,
    update(state) {
      starting.hidden = !state.starting;
      if (state.starting) {
        const { rehearsed, of } = state.starting;
        setText(starting, `Starting: ${rehearsed} of ${of} queries rehearsed.`);
        return;
      }
      if (!state.classes) return;
      problems.update(state);
      tiles.update(state);
      for (const name of cards.keys()) {
        if (!state.classes[name]) {
          cards.get(name).node.remove();
          cards.delete(name);
        }
      }
      const names = Object.keys(state.classes);
      names.sort((a, b) => state.classes[b].priority - state.classes[a].priority);
      for (const name of names) {
        if (!cards.has(name)) {
          cards.set(name, classCard(name));
          classes.append(cards.get(name).node);
        }
        cards.get(name).update(state.classes[name], state.at_s);
      }
    },
  };
}

/** Return the problems of a state, the worst first. */
function problemsOf(state) {
  const lines = [];
  const add = (key, kind, name, text, level = "bad") => lines.push({ key: JSON.stringify([key, name]), kind, name, text, level });
  for (const [name, query] of Object.entries(state.queries)) {
    if (query.state === "FAILED") add("query", "query", name, withoutName(query.cause ?? "has failed", name));
  }
  const [policy, replacement] = state.policy.split(", replaced by ");
  if (replacement) add("policy", "policy", policy, `has failed and is replaced by ${replacement}`);
  for (const { stream, state: kind, cause } of state.troubles ?? []) {
    add("trouble", "stream", stream, `${kind === "STOPPED" ? "has stopped" : "fails and is tried again"}: ${cause}`);
  }
  for (const [stream, lag] of Object.entries(state.lags ?? {})) {
    add("lag", "stream", stream, `lags ${seconds(lag.behind_s)} behind its source, since ${time(lag.since_s)}`, "warning");
  }
  for (const [name, share] of Object.entries(state.used ?? {})) {
    if (share >= HIGH) add("budget", "budget of", name, `is ${percent(share)} used`);
  }
  for (const [stream, letters] of Object.entries(state.dead_letters ?? {})) {
    add("letters", "stream", stream, `has ${some(letters, "dead letter")}`, "warning");
  }
  return lines;
}

/** Return the list of problems. A line stays the same element, so that its link keeps the focus. */
function problemList() {
  const node = element("ul", { class: "problems", "aria-label": "Problems" });
  const items = new Map();
  return {
    node,
    update(state) {
      const lines = problemsOf(state);
      const keys = new Set(lines.map((line) => line.key));
      for (const [key, item] of items) {
        if (keys.has(key)) continue;
        item.node.remove();
        items.delete(key);
      }
      lines.forEach((line, index) => {
        if (!items.has(line.key)) items.set(line.key, problemLine(line));
        const item = items.get(line.key);
        setText(item.text, line.text);
        if (node.children[index] !== item.node) node.insertBefore(item.node, node.children[index] ?? null);
      });
    },
  };
}

function problemLine({ kind, name, level }) {
  const text = element("span", {});
  const subject = kind === "query" ? element("a", { href: queryLink(name), "data-view": true }, name) : name;
  return { text, node: element("li", { class: level }, element("strong", {}, kind), " ", subject, " ", text) };
}

/** Return a cause without the name at its beginning, which stands before it as a link. */
function withoutName(cause, name) {
  return cause.replace(`query '${name}' `, "");
}

export function queryLink(name) {
  return `page/queries/${encodeURIComponent(name)}`;
}

function tileRow() {
  const tile = (label) => {
    const value = element("dd", {});
    const detail = element("dd", { class: "quiet" });
    return { node: element("div", { class: "tile" }, element("dt", {}, label), value, detail), value, detail };
  };
  const meter = (label) => {
    const parts = tile(label);
    parts.bar = element("meter", { min: 0, max: 1, high: HIGH, optimum: 0, "aria-label": label });
    parts.detail.replaceChildren(parts.bar);
    return parts;
  };
  const [policy, workers, output, scheduler] = ["Policy", "Busy workers", "Results", "Scheduler"].map(tile);
  const [memory, log] = ["Memory budget", "Log budget"].map(meter);
  const all = [policy, workers, output, memory, log, scheduler];
  return {
    node: element("dl", { class: "tiles" }, ...all.map((part) => part.node)),
    update(state) {
      const [name, parameters] = spelled(state.policy.split(", ")[0]);
      const words = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
      if (state.deciding !== name) words.unshift(`${state.deciding} decides`);
      setText(policy.value, name);
      setText(policy.detail, words.join(", ") || "decides");
      setText(workers.value, `${state.busy} of ${state.workers}`);
      const used = state.overhead_s.busy / (state.workers * state.seconds || 1);
      setText(workers.detail, `${percent(Math.min(1, used))} busy since the start`);
      const rows = Object.values(state.classes);
      const sum = (key) => rows.reduce((total, row) => total + (row[key] ?? 0), 0);
      setText(output.value, rate(sum("results_per_s")));
      setText(output.detail, `${count(sum("waiting"))} tuples wait`);
      for (const [part, share] of [[memory, state.used.memory], [log, state.used.log]]) {
        setText(part.value, percent(share));
        part.bar.value = share;
      }
      setText(scheduler.value, percent(state.overhead_s.scheduler / (state.seconds || 1)));
      setText(scheduler.detail, "of the time, deciding");
    },
  };
}

function classCard(name) {
  const chart = lineChart(`Response times of class ${name}: mean and 95th percentile`);
  const scale = element("span", { class: "quiet" });
  const title = element("h3", {}, name);
  const about = element("span", { class: "quiet" });
  const figures = ["mean", "p95", "waiting", "results", "QoS", "shed", "late", "failed"].map((label) => {
    const value = element("dd", {});
    return { label, value, node: element("div", {}, element("dt", {}, label), value) };
  });
  const node = element(
    "section",
    { class: "panel class" },
    element("div", { class: "head" }, title, about),
    element("dl", { class: "figures" }, ...figures.map((figure) => figure.node)),
    element("figure", {}, chart.node, element("figcaption", {}, element("span", { class: "key line-1" }, "mean"), element("span", { class: "key line-2" }, "p95"), scale)),
  );
  return {
    node,
    update(row, at_s) {
      setText(about, `priority ${row.priority} · ${some(row.queries, "query")}${row.target_s == null ? "" : ` · target ${seconds(row.target_s)}`}${row.deadline_s == null ? "" : ` · shortest deadline ${seconds(row.deadline_s)}`}`);
      const texts = {
        mean: seconds(row.mean_response_s), p95: seconds(row.p95_response_s), waiting: count(row.waiting),
        results: rate(row.results_per_s), QoS: row.qos == null ? "–" : percent(row.qos),
        shed: count(row.shed), late: count(row.late), failed: count(row.failed),
      };
      for (const figure of figures) setText(figure.value, texts[figure.label]);
      const over = row.deadline_s != null && row.p95_response_s > row.deadline_s;
      figures[1].value.className = over ? "bad" : "";
      figures[0].value.className = row.target_s != null && row.mean_response_s > row.target_s ? "bad" : "";
      figures[7].value.className = row.failed ? "bad" : "";
      const points = store.history.map(({ at_s, classes }) => [at_s, classes[name]?.mean ?? null, classes[name]?.p95 ?? null]);
      points.push([at_s, row.mean_response_s ?? null, row.p95_response_s ?? null]);
      const most = Math.max(0, ...points.map((point) => point[2] ?? 0));
      const span_s = (points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0);
      setText(scale, most ? `up to ${seconds(most)} in the last ${Math.round(span_s)} s` : "no results yet");
      chart.update(points, row.deadline_s != null && row.deadline_s < most * 3 ? row.deadline_s : null);
    },
  };
}
