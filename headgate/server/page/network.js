// The network: streams, the parts that queries share, queries and sinks. Width is rate, color is
// the tuples that wait; a click leads to the query.

import { ask } from "./api.js";
import { drawn, element, setText } from "./dom.js";
import { count, rate } from "./format.js";
import { queryLink } from "./overview.js";

const EVERY_MS = 10_000;
const ROW = 30;
const BOX = 22;
const PLACES = { stream: 8, part: 220, query: 500, sink: 800 };
const WIDTHS = { stream: 150, part: 220, query: 230, sink: 190 };
const WIDTH = 1000;
const MOST_STROKE = 10;
const LETTERS = { stream: 20, part: 31, query: 31, sink: 26 };

/** Return how many tuples wait as one of five levels. */
function level(waiting) {
  if (!waiting) return 0;
  return Math.min(4, 1 + Math.floor(Math.log10(waiting) / 1.5));
}

function short(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function networkView(goTo) {
  const problem = element("p", { class: "message bad", hidden: true });
  const picture = element("div", { class: "scroll network", tabindex: 0, "aria-label": "The network" });
  let asked_ms = -EVERY_MS;
  let shown = "";
  let parts = [];

  function box(kind, y, label, title) {
    const group = drawn("g", {});
    const rect = drawn("rect", { x: PLACES[kind], y: y - BOX / 2, width: WIDTHS[kind], height: BOX, rx: 5, class: `box ${kind}` });
    const text = drawn("text", { x: PLACES[kind] + 7, y: y + 4 });
    setText(text, short(label, LETTERS[kind]));
    const tip = drawn("title");
    setText(tip, title);
    group.append(tip, rect, text);
    return { group, rect, tip };
  }

  function arrow(from, y1, to, y2) {
    const [x1, x2] = [PLACES[from] + WIDTHS[from], PLACES[to]];
    const middle = (x1 + x2) / 2;
    return drawn("path", { d: `M${x1},${y1}C${middle},${y1} ${middle},${y2} ${x2},${y2}`, class: "arrow", fill: "none" });
  }

  function draw(network) {
    const boxes = [];
    const arrows = [];
    parts = [];
    const yOfStream = new Map();
    const rowsOfStream = new Map();
    let y = 24;
    for (const part of network.parts) {
      const first = y;
      const lines = part.queries.map((name) => {
        const facts = network.queries[name];
        const query = box("query", y, name, facts.text);
        const link = drawn("a", { href: queryLink(name), "data-view": "" });
        link.append(query.group);
        link.addEventListener("click", (event) => {
          event.preventDefault();
          event.stopPropagation();
          goTo(queryLink(name));
        });
        const [format, ...where] = facts.sink.split(" ");
        const sink = box("sink", y, `${format} ${where.join(" ").split("/").pop()}`, facts.sink);
        const out = arrow("query", y, "sink", y);
        arrows.push(out);
        boxes.push(link, sink.group);
        const line = { name, query, out, y };
        y += ROW;
        return line;
      });
      const middle = (first + y - ROW) / 2;
      const shape = part.queries.length === 1 ? part.shape : `${part.queries.length} queries, ${part.shape.split(":")[0]}`;
      const shared = box("part", middle, shape, part.shape);
      boxes.push(shared.group);
      for (const line of lines) {
        line.into = arrow("part", middle, "query", line.y);
        arrows.push(line.into);
      }
      parts.push({ ...part, lines, middle, reads: [] });
      for (const stream of part.streams) {
        if (!rowsOfStream.has(stream)) rowsOfStream.set(stream, []);
        rowsOfStream.get(stream).push(middle);
      }
      y += ROW / 3;
    }
    let free = 24;
    for (const [stream, format] of Object.entries(network.streams)) {
      const rows = rowsOfStream.get(stream) ?? [free];
      const at = Math.max(free, rows.reduce((sum, row) => sum + row, 0) / rows.length);
      free = at + ROW;
      yOfStream.set(stream, at);
      boxes.push(box("stream", at, stream, `${stream}, ${format}`).group);
    }
    for (const part of parts) {
      for (const stream of part.streams) {
        if (!yOfStream.has(stream)) continue;
        const path = arrow("stream", yOfStream.get(stream), "part", part.middle);
        part.reads.push(path);
        arrows.push(path);
      }
    }
    const height = Math.max(y, free) + 10;
    picture.replaceChildren(drawn("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "group" }, ...arrows, ...boxes));
  }

  function paint(state) {
    const queries = state.queries;
    const most = Math.max(1, ...Object.values(queries).flatMap((row) => [row.tuples_per_s ?? 0, row.results_per_s ?? 0]));
    const stroke = (value) => String(1 + (Math.sqrt((value ?? 0) / most)) * MOST_STROKE);
    for (const part of parts) {
      const rows = part.lines.map(({ name }) => (Object.hasOwn(queries, name) ? queries[name] : {}));
      const tuples = Math.max(0, ...rows.map((row) => row.tuples_per_s ?? 0));
      for (const path of part.reads) path.setAttribute("stroke-width", stroke(tuples));
      part.lines.forEach((line, index) => {
        const row = rows[index];
        line.into.setAttribute("stroke-width", stroke(row.tuples_per_s));
        line.out.setAttribute("stroke-width", stroke(row.results_per_s));
        line.query.rect.setAttribute("class", `box query level-${row.state === "FAILED" ? "failed" : level(row.waiting)}`);
        setText(line.query.tip, `${line.name}, class ${row.class}: ${count(row.waiting)} tuples wait, ${rate(row.tuples_per_s)} in, ${rate(row.results_per_s)} out`);
      });
    }
  }

  async function show() {
    asked_ms = performance.now();
    try {
      const network = await ask("GET", "network");
      problem.hidden = true;
      const key = JSON.stringify([network.parts, network.streams]);
      if (key !== shown) {
        shown = key;
        draw(network);
      }
    } catch (error) {
      problem.hidden = false;
      setText(problem, error.message);
    }
  }

  const legend = ["nothing", "a few", "hundreds", "thousands", "more"].map((text, index) =>
    element("span", { class: `legend level-${index}` }, text),
  );
  return {
    node: element(
      "div", {},
      element("h1", {}, "Network"),
      element("p", { class: "quiet" }, "Streams, shared parts, queries and sinks. The width of an arrow is its rate. The color of a query is how many tuples wait:"),
      element("p", { class: "legends" }, ...legend),
      problem, element("section", { class: "panel" }, picture),
    ),
    update(state) {
      if (performance.now() - asked_ms > EVERY_MS) show().then(() => paint(state));
      else paint(state);
    },
  };
}
