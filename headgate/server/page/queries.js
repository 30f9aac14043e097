// The table of all queries. Rows stay in the document, so that the browser's own search finds them;
// those out of sight cost no layout (content-visibility), and only cells that change are touched.

import { element, setText } from "./dom.js";
import { count, number, percent, rate, seconds, some } from "./format.js";
import { queryLink } from "./overview.js";

const TEXT = "text";
const COLUMNS = [
  ["query", "Query", TEXT, (row, name) => name],
  ["class", "Class", TEXT, (row) => row.class],
  ["state", "State", TEXT, (row) => row.state.toLowerCase()],
  ["waiting", "Waiting", count, (row) => row.waiting],
  ["oldest", "Oldest", seconds, (row) => row.oldest_waiting_s],
  ["mean", "Mean", seconds, (row) => row.mean_response_s],
  ["p95", "p95", seconds, (row) => row.p95_response_s],
  ["slowdown", "Slowdown", number, (row) => row.mean_slowdown],
  ["qos", "QoS", percent, (row) => row.measures?.qos],
  ["results", "Results", rate, (row) => row.results_per_s],
  ["selectivity", "Selectivity", number, (row) => row.selectivity],
  ["cost", "Cost", seconds, (row) => row.tuple_cost_s],
  ["lane", "Lane", TEXT, (row) => row.lane],
  ["shared", "Shared with", TEXT, (row) => (row.shared_with ? some(row.shared_with, "query") : null)],
];

const NOTHING = Symbol("no value was shown yet");

const KEY = "headgate-queries";

/** The order and the filters, which stay in this tab, also after a reload. */
const chosen = { column: "query", down: false, text: "", class: "", state: "", ...JSON.parse(sessionStorage.getItem(KEY) ?? "{}") };

function choose(values) {
  Object.assign(chosen, values);
  sessionStorage.setItem(KEY, JSON.stringify(chosen));
}

export function queriesView() {
  const summary = element("p", { class: "quiet", role: "status" });
  const search = element("input", {
    type: "search", placeholder: "name, stream or cause", "aria-label": "Search", value: chosen.text,
  });
  const classes = element("select", { "aria-label": "Class" }, new Option("all classes", ""));
  const states = element("select", { "aria-label": "State" }, new Option("all states", ""));
  const head = element("div", { class: "row heads", role: "row" });
  const body = element("div", { role: "rowgroup" });
  const table = element(
    "div",
    { class: "queries", role: "table", "aria-label": "Queries", tabindex: 0 },
    element("div", { role: "rowgroup", class: "top" }, head),
    body,
  );
  const rows = new Map();
  let queries = {};

  for (const [key, label, kind] of COLUMNS) {
    const button = element("button", { type: "button", onclick: () => sortBy(key) }, label);
    head.append(element("div", { role: "columnheader", class: `cell ${key} ${kind === TEXT ? "" : "number"}` }, button));
  }

  function sortBy(key) {
    if (chosen.column === key) choose({ down: !chosen.down });
    else choose({ column: key, down: COLUMNS.find(([name]) => name === key)[2] !== TEXT });
    arrange(true);
  }

  /** Put the rows in order; while somebody points at them they stay where they are. */
  function arrange(always) {
    COLUMNS.forEach(([key], index) => {
      const order = chosen.column === key ? (chosen.down ? "descending" : "ascending") : "none";
      head.children[index].setAttribute("aria-sort", order);
    });
    if (!always && (body.matches(":hover") || body.contains(document.activeElement))) return;
    const value = COLUMNS.find(([key]) => key === chosen.column)[3];
    const sign = chosen.down ? -1 : 1;
    const keyed = [...rows].map(([name, row]) => [value(queries[name], name), name, row.node]);
    keyed.sort(([a, nameA], [b, nameB]) => compared(a, b, sign) || (nameA < nameB ? -1 : 1));
    const nodes = keyed.map(([, , node]) => node);
    if (nodes.some((node, index) => body.children[index] !== node)) body.append(...nodes);
  }

  function filter() {
    const text = chosen.text.trim().toLowerCase();
    let shown = 0;
    for (const [name, row] of rows) {
      const query = queries[name];
      const words = `${name} ${query.stream ?? ""} ${query.cause ?? ""}`.toLowerCase();
      const fits = words.includes(text) && (!chosen.class || query.class === chosen.class) && (!chosen.state || query.state === chosen.state);
      if (row.node.hidden === fits) row.node.hidden = !fits;
      shown += fits;
    }
    setText(summary, shown === rows.size ? some(shown, "query") : `${count(shown)} of ${some(rows.size, "query")}`);
  }

  search.addEventListener("input", () => {
    choose({ text: search.value });
    filter();
  });
  for (const [select, key] of [[classes, "class"], [states, "state"]]) {
    select.addEventListener("change", () => {
      choose({ [key]: select.value });
      filter();
    });
  }

  return {
    node: element(
      "div",
      {},
      element("h1", {}, "Queries"),
      element("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() }, search, classes, states, summary),
      table,
    ),
    update(state) {
      queries = state.queries;
      let changed = false;
      for (const [name, row] of rows) {
        if (!Object.hasOwn(queries, name)) {
          row.node.remove();
          rows.delete(name);
          changed = true;
        }
      }
      for (const name of Object.keys(queries)) {
        if (!rows.has(name)) {
          rows.set(name, newRow(name));
          body.append(rows.get(name).node);
          changed = true;
        }
        rows.get(name).update(queries[name]);
      }
      options(classes, chosen.class, Object.keys(state.classes ?? {}));
      options(states, chosen.state, [...new Set(Object.values(queries).map((query) => query.state))].sort());
      arrange(changed && rows.size === body.children.length && !body.matches(":hover"));
      filter();
    },
  };
}

function newRow(name) {
  const link = element("a", { href: queryLink(name), "data-view": true }, name);
  const cells = COLUMNS.map(([key, , kind], index) =>
    element("div", { role: "cell", class: `cell ${key} ${kind === TEXT ? "" : "number"}` }, index === 0 ? link : ""),
  );
  const node = element("div", { class: "row", role: "row" }, ...cells);
  const values = COLUMNS.map(() => NOTHING);
  return {
    node,
    update(query) {
      COLUMNS.forEach(([key, , kind, value], index) => {
        const current = value(query, name);
        if (index === 0 || current === values[index]) return;
        values[index] = current;
        setText(cells[index], kind === TEXT ? (current ?? "–") : kind(current));
        if (key === "state") node.dataset.state = current;
      });
    },
  };
}

/** Compare two values; one that is not known comes last in any order. */
function compared(a, b, sign) {
  if (a == null || b == null) return (a == null) - (b == null);
  return a < b ? -sign : a > b ? sign : 0;
}

/** Fill a select with options, if they have changed. The chosen one stays: it still filters. */
function options(select, value, present) {
  const names = value && !present.includes(value) ? [...present, value] : present;
  const key = names.join("\n");
  if (select.dataset.key === key) return;
  select.dataset.key = key;
  select.replaceChildren(select.options[0], ...names.map((name) => new Option(name, name)));
  select.value = value;
}
