// One query: what it does, how it runs, what it is worth, and what can be done to it.

import { ask, queryPath } from "./api.js";
import { refusals } from "./add.js";
import { lineChart } from "./chart.js";
import { announce, confirmed, element, field, messageBox, setText } from "./dom.js";
import { count, number, percent, rate, seconds } from "./format.js";
import { qosEditor } from "./qos.js";
import { whyPanel } from "./why.js";

const HISTORY_S = 600;
const SETTLED_MS = 2000; // how long the stream of updates may still bring what was there before
const FIGURES = [
  ["Waiting", (row) => count(row.waiting)],
  ["Oldest", (row) => seconds(row.oldest_waiting_s)],
  ["Mean", (row) => seconds(row.mean_response_s)],
  ["p95", (row) => seconds(row.p95_response_s)],
  ["Mean since start", (row) => seconds(row.mean_response_s_since_start)],
  ["Slowdown", (row) => number(row.mean_slowdown)],
  ["Results", (row) => rate(row.results_per_s)],
  ["Tuples", (row) => rate(row.tuples_per_s)],
  ["QoS", (row) => percent(row.measures?.qos)],
  ["Staleness", (row) => percent(row.measures?.staleness)],
  ["Tardiness", (row) => seconds(row.measures?.tardiness_s)],
  ["Selectivity", (row) => number(row.selectivity)],
  ["Cost per tuple", (row) => seconds(row.tuple_cost_s)],
  ["Ideal time", (row) => seconds(row.ideal_s)],
  ["Delivered", (row) => count(row.delivered)],
  ["Shed", (row) => count(row.shed)],
  ["Missed", (row) => count(row.missed)],
  ["Late", (row) => count(row.late)],
  ["Dead letters", (row) => count(row.dead_lettered)],
];

const ACTIONS = {
  pause: ["Pause", "Its tuples wait in the log for as long as retention keeps them. It stays paused in later runs, until it is resumed."],
  resume: ["Resume", "It goes on where it stands."],
  restart: ["Restart", "It gets a new sink and new plans and goes on where it stands. Nothing is lost and nothing comes twice."],
  drop: ["Drop", "It ends for good. Its results stay, its position in the log is forgotten. This cannot be undone."],
};

export function queryView(goTo, name) {
  const state = element("span", { class: "badge" });
  const about = element("p", { class: "quiet" });
  const cause = element("p", { class: "message bad", hidden: true });
  const message = messageBox();
  const figures = FIGURES.map(([label, text]) => {
    const value = element("dd", {});
    return { text, value, node: element("div", {}, element("dt", {}, label), value) };
  });
  const chart = lineChart(`Response times of ${name}: mean and 95th percentile`);
  const scale = element("span", { class: "quiet" });
  const points = [];
  const buttons = Object.fromEntries(
    Object.entries(ACTIONS).map(([action, [label]]) => [
      action,
      element("button", { type: "button", class: action === "drop" ? "danger" : "", onclick: () => act(action) }, label),
    ]),
  );
  let asked = false;
  const explained = element("dl", { class: "facts" });
  const sql = element("pre", { class: "sql", tabindex: 0, "aria-label": "SQL" });
  const worth = worthForm(name, message);
  const alter = textForm(name, sql, message, () => {
    asked = false;
    explain();
  });
  const why = whyPanel(name);
  const gone = element("p", { class: "panel", hidden: true }, `There is no query ${name} in this run.`);
  const content = element(
    "div",
    {},
    about, cause,
    element("p", { class: "buttons" }, ...Object.values(buttons)),
    message.node,
    element("section", { class: "panel" },
      element("dl", { class: "figures wide" }, ...figures.map((figure) => figure.node)),
      element("figure", {}, chart.node, element("figcaption", {}, element("span", { class: "key line-1" }, "mean"), element("span", { class: "key line-2" }, "p95"), scale))),
    why.node,
    element("div", { class: "columns" },
      element("section", { class: "panel" }, element("h2", {}, "Text"), sql, alter),
      element("section", { class: "panel" }, element("h2", {}, "What its results are worth"), worth.node)),
    element("section", { class: "panel" }, element("h2", {}, "How it runs"), explained),
  );

  async function act(action) {
    const [label, consequence] = ACTIONS[action];
    if (!(await confirmed(`${label} ${name}?`, consequence, label))) return;
    try {
      if (action === "drop") await ask("DELETE", queryPath(name));
      else await ask("POST", queryPath(name, `/${action}`));
      const done = { pause: "paused", resume: "resumed", restart: "restarted", drop: "dropped" }[action];
      announce(`Query ${name} is ${done}.`);
      if (action === "drop") goTo("page/queries");
      else message.say(`The query is ${done}.`);
    } catch (error) {
      message.refuse(error.message);
    }
  }

  async function explain() {
    if (asked) return;
    asked = true;
    try {
      showExplanation(explained, sql, await ask("GET", queryPath(name)));
    } catch (error) {
      asked = false; // the run may still be starting
      setText(sql, error.message);
    }
  }

  return {
    node: element("div", {}, element("div", { class: "title" }, element("h1", {}, name), state), gone, content),
    update(current) {
      const row = Object.hasOwn(current.queries, name) ? current.queries[name] : null;
      gone.hidden = row !== null;
      content.hidden = row === null;
      state.hidden = row === null;
      if (row === null) return;
      setText(state, row.state.toLowerCase());
      state.className = `badge ${row.state === "FAILED" ? "bad" : row.state === "RUNNING" || row.state === "WAITING" ? "good" : "warning"}`;
      setText(about, `class ${row.class} · stream ${row.stream ?? "–"} · lane ${row.lane ?? "–"} · id ${row.id ?? "–"}, version ${row.version ?? "–"}`);
      cause.hidden = !row.cause;
      setText(cause, row.cause ?? "");
      const stands = row.state === "PAUSED" || row.state === "STOPPED";
      buttons.pause.hidden = stands || row.state === "FAILED";
      buttons.resume.hidden = !stands;
      if (!current.classes) return;
      for (const figure of figures) setText(figure.value, figure.text(row));
      worth.update(row, current);
      points.push([current.at_s, row.mean_response_s ?? null, row.p95_response_s ?? null]);
      while (current.at_s - points[0][0] > HISTORY_S) points.shift();
      const most = Math.max(0, ...points.map((point) => point[2] ?? 0));
      setText(scale, most ? `up to ${seconds(most)}` : "no results yet");
      chart.update(points, row.deadline_s != null && row.deadline_s < most * 3 ? row.deadline_s : null);
      why.update(row);
      explain();
    },
  };
}

function showExplanation(list, sql, facts) {
  const others = facts.shares_code_with;
  const rows = [
    ["Operators", facts.operators.map((operator) => `${operator.kind} ${operator.expressions.join(", ")}`.trim()).join(" → ")],
    ["Reads", facts.reads.join(", ")],
    ["Sink", facts.sink],
    ["Shares its code with", others.length ? others.join(", ") : "nobody"],
    ["Shape", facts.shape],
    ["Lane", facts.lane],
    ["Order of conditions", facts.order],
    ["Next train", facts.next_train],
    ["SQL of the group", facts.group_sql],
  ];
  setText(sql, facts.sql);
  list.replaceChildren(
    ...rows.filter(([, text]) => text != null && text !== "").flatMap(([label, text]) => [
      element("dt", {}, label),
      element("dd", { class: label === "SQL of the group" ? "sql" : "" }, String(text)),
    ]),
  );
}

/** The form that gives the query another text. */
function textForm(name, sql, message, done) {
  const text = element("textarea", { rows: 8, required: true, spellcheck: "false", wrap: "off", "aria-label": "New text" });
  const from = element("select", {}, new Option("where the query stands", ""), new Option("the oldest tuple in the log", "oldest"), new Option("now", "now"));
  const shown = refusals(text, message);
  const cancel = element("button", { type: "button" }, "Cancel");
  const form = element("form", { hidden: true }, text, shown.node, field("Continues with", from),
    element("p", { class: "buttons" }, element("button", { class: "primary" }, "Alter"), cancel));
  const open = element("button", { type: "button" }, "Alter …");
  const close = (hidden) => {
    form.hidden = hidden;
    open.hidden = sql.hidden = !hidden;
  };
  open.addEventListener("click", () => {
    text.value = sql.textContent;
    close(false);
    text.focus();
  });
  cancel.addEventListener("click", () => {
    shown.clear();
    close(true);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    shown.clear();
    const where = from.value === "" ? "It continues where it stands" : from.value === "now" ? "It continues with tuples that arrive from now on" : "It begins with the oldest tuple in the log";
    if (!(await confirmed(`Alter ${name}?`, `${where}, as its next version, whose results have a folder of their own. If the text is refused, the query goes on as it was.`, "Alter"))) return;
    try {
      const answer = await ask("PUT", queryPath(name, "/sql"), { sql: text.value, from: from.value || null });
      close(true);
      message.say(`The query is altered: it is version ${answer.version} now.`);
      done();
    } catch (error) {
      shown.refuse(error);
    }
  });
  return element("div", {}, form, element("p", { class: "buttons" }, open));
}

/** The form that changes class, weight, deadline and QoS graph. */
function worthForm(name, message) {
  const queryClass = element("select", {});
  const weight = element("input", { type: "number", min: 0, step: "any", required: true });
  const deadline = element("input", { type: "number", min: 0, step: "any", placeholder: "none" });
  let row = null;
  let shown = "";
  let settled_ms = 0;
  const touched = new Set(); // what the user has changed; all else follows the run
  const graph = qosEditor(() => touched.add(graph));
  const form = element(
    "form",
    {},
    field("Class", queryClass),
    field("Weight", weight),
    field("Deadline in seconds", deadline, "Empty for none; a query over windows then has their slide."),
    graph.node,
    element("p", { class: "buttons" }, element("button", { class: "primary" }, "Change")),
    element("small", {}, "It also holds in later runs, until it is undone under Changes."),
  );
  form.addEventListener("input", (event) => touched.add(event.target));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const change = {};
    if (touched.has(queryClass) && queryClass.value !== row.class) change.class = queryClass.value;
    if (touched.has(weight) && Number(weight.value) !== row.weight) change.weight = Number(weight.value);
    const wanted = deadline.value === "" ? null : Number(deadline.value);
    if (touched.has(deadline) && wanted !== (row.deadline_s ?? null)) change.deadline_s = wanted;
    if (touched.has(graph) && JSON.stringify(graph.points()) !== JSON.stringify(row.qos ?? null)) change.qos = graph.points();
    if (!Object.keys(change).length) {
      message.say("Nothing is changed.");
      return;
    }
    const names = { qos: "QoS graph", deadline_s: "deadline" };
    const text = (key, value) => {
      if (Array.isArray(value)) return value.map(([latency, utility]) => `${utility} at ${latency} s`).join(", ");
      return value === null ? "none" : key === "deadline_s" ? `${value} s` : value;
    };
    const words = Object.entries(change).map(([key, value]) => `${names[key] ?? key} becomes ${text(key, value)}`);
    if (!(await confirmed(`Change ${name}?`, `Its ${words.join(", its ")}, from the next call on. No result changes.`, "Change"))) return;
    try {
      await ask("PATCH", queryPath(name), change);
      touched.clear();
      settled_ms = performance.now() + SETTLED_MS;
      message.say(`Changed: its ${words.join(", its ")}.`);
    } catch (error) {
      message.refuse(error.message);
    }
  });
  return {
    node: form,
    update(current, state) {
      row = current;
      const names = Object.keys(state.classes);
      if (queryClass.dataset.key !== names.join("\n")) {
        queryClass.dataset.key = names.join("\n");
        queryClass.replaceChildren(...names.map((text) => new Option(text, text)));
      }
      if (performance.now() < settled_ms) return;
      for (const [control, value] of [[queryClass, row.class], [weight, row.weight], [deadline, row.deadline_s ?? ""]]) {
        if (!touched.has(control) && control !== document.activeElement) control.value = value;
      }
      const points = JSON.stringify(row.qos ?? null);
      if (points !== shown && !touched.has(graph)) {
        shown = points;
        graph.set(row.qos ?? null);
      }
    },
  };
}
