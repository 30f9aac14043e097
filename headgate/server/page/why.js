// Why did it wait? The parts of a response time on a line of time, and the calls that ran instead.

import { ask, queryPath } from "./api.js";
import { drawn, element, setText } from "./dom.js";
import { count, number, seconds, some, time } from "./format.js";

const WIDTH = 1000;
const HEIGHT = 44;
const MOST_NAMES = 3;
const MOST_CALLS = 200;
const HEADS = ["Ran instead", "Class", "After", "For", "Priority", "Own priority", "Why"];

/** Return the class of a column of the table of calls. */
const numeric = (index) => (index > 1 && index < HEADS.length - 1 ? "number" : "");

const MEANINGS = {
  source: "until its source's log had it",
  backpressure: "until a budget had room again",
  partner: "until the other streams had come as far",
  bound: "until a silent stream was known to have come as far",
  window: "until the order of its window's stream was certain",
  log: "until the log of a view or segment had it",
  turn: "until its turn",
  running: "in a call",
  committing: "until its results were visible",
  retry: "until it was tried again",
  paused: "until the query went on",
};

export function whyPanel(name) {
  const summary = element("p", { class: "quiet" });
  const timeline = element("div", {});
  const parts = element("ul", { class: "parts" });
  const calls = element("tbody", {});
  const head = element("thead", {}, element("tr", {}, ...HEADS.map((text, index) => element("th", { scope: "col", class: numeric(index) }, text))));
  const table = element("table", { class: "instead", hidden: true }, head, calls);
  const more = element("p", { class: "quiet", hidden: true });
  const worst = element("button", { type: "button", onclick: () => show() }, "The worst of the last minute");
  const moment = element("input", { type: "datetime-local", step: 1, "aria-label": "Committed at" });
  const nearest = element("button", { type: "button", onclick: () => show(new Date(moment.value).getTime() / 1000) }, "Committed then");
  nearest.disabled = true;
  moment.addEventListener("input", () => {
    nearest.disabled = !moment.value;
  });
  const node = element(
    "section",
    { class: "panel", hidden: true },
    element("h2", {}, "Why did it wait?"),
    element("p", { class: "buttons" }, worst, moment, nearest),
    summary, timeline, parts,
    element("div", { class: "scroll" }, table),
    more,
  );
  let asked = false;

  async function show(at_s) {
    try {
      draw(await ask("GET", queryPath(name, `/why${at_s ? `?at=${at_s}` : ""}`)));
    } catch (error) {
      setText(summary, error.message);
      timeline.replaceChildren();
      parts.replaceChildren();
      table.hidden = more.hidden = true; // else the chart of another call would stand below the refusal
    }
  }

  function draw(answer) {
    const { arrival, commit, response_s: response } = answer;
    const x = (at_s) => ((at_s - arrival) / Math.max(response, 1e-9)) * WIDTH;
    const others = answer.fused.length > 1 ? `, together with ${some(answer.fused.length - 1, "other query")}` : "";
    setText(summary, `The slowest result was visible ${seconds(response)} after its tuple had arrived: from ${time(arrival)} to ${time(commit)}. Call ${answer.call} over stream ${answer.stream ?? "–"} gave it, on the ${answer.lane} lane under policy ${answer.policy}${others}.`);
    const bars = answer.parts.map((part) => {
      const bar = drawn("rect", { x: x(part.from), y: 4, width: Math.max(1, x(part.to) - x(part.from)), height: HEIGHT - 8, class: `part ${part.kind}` });
      bar.append(drawn("title"));
      setText(bar.firstChild, `${part.kind} ${seconds(part.to - part.from)}`);
      return bar;
    });
    timeline.replaceChildren(drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "timeline", preserveAspectRatio: "none", "aria-hidden": "true" }, ...bars));
    parts.replaceChildren(
      ...answer.parts.map((part) =>
        element("li", { class: `key-${part.kind}` }, element("strong", {}, `${part.kind} ${seconds(part.to - part.from)}`), ` ${MEANINGS[part.kind] ?? ""}${part.segment && part.segment !== name ? `, at ${part.segment}` : ""}`),
      ),
    );
    table.hidden = !answer.instead.length;
    more.hidden = answer.instead.length <= MOST_CALLS;
    setText(more, `The first ${MOST_CALLS} of ${count(answer.instead.length)} calls; \`headgate why ${name}\` prints all of them.`);
    calls.replaceChildren(
      ...answer.instead.slice(0, MOST_CALLS).map((call) => {
        const names = call.queries.slice(0, MOST_NAMES).join(", ");
        const rest = call.queries.length > MOST_NAMES ? ` and ${call.queries.length - MOST_NAMES} more` : "";
        const cells = [names + rest, call.class ?? "–", seconds(Math.max(0, call.from - arrival)), seconds(call.to - Math.max(call.from, arrival)), number(call.priority), number(call.own_priority), call.reason];
        return element("tr", {}, ...cells.map((text, index) => element("td", { class: numeric(index) }, text)));
      }),
    );
  }

  return {
    node,
    update(row) {
      node.hidden = !row.results_since_start;
      if (asked || node.hidden) return;
      asked = true;
      show();
    },
  };
}
