// A QoS graph whose points are dragged: utility by latency, never rising.

import { drawn, element, setText } from "./dom.js";

const WIDTH = 320;
const HEIGHT = 150;
const EDGE = 22;
const STEP = 0.02;

/** Keep a graph falling or level, with its first point at 0 and distances between latencies. */
export function placed(points, index, latency, utility) {
  const next = points.map((point) => [...point]);
  const before = next[index - 1];
  const after = next[index + 1];
  const most = before ? before[1] : 1;
  const least = after ? after[1] : 0;
  const from = before ? before[0] + 0.001 : 0;
  const until = after ? after[0] - 0.001 : Infinity;
  next[index] = [
    index === 0 ? 0 : Number(Math.min(until, Math.max(from, latency)).toFixed(3)),
    Number(Math.min(most, Math.max(least, utility)).toFixed(3)),
  ];
  return next;
}

/** Return an editor: `set(points)` shows a graph or none, `points()` is what the user has made. */
export function qosEditor(changed) {
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "qos", role: "group", "aria-label": "QoS graph: drag its points" });
  const text = element("small", {});
  const add = element("button", { type: "button" }, "Add a point");
  const remove = element("button", { type: "button" }, "Remove the last");
  const none = element("button", { type: "button" }, "No graph");
  const node = element("div", { class: "field" }, element("label", {}, "QoS graph"), svg, text, element("p", { class: "buttons" }, add, remove, none));
  let points = null;
  let span = 1;

  const x = (latency) => EDGE + (latency / span) * (WIDTH - 2 * EDGE);
  const y = (utility) => HEIGHT - EDGE - utility * (HEIGHT - 2 * EDGE);

  function touch(next) {
    points = next;
    draw();
    changed();
  }

  function draw() {
    remove.disabled = points === null || points.length < 3;
    none.disabled = points === null;
    setText(add, points === null ? "Make a graph" : "Add a point");
    svg.toggleAttribute("hidden", points === null);
    svg.replaceChildren();
    if (points === null) {
      setText(text, "None: every result counts the same, however late.");
      return;
    }
    setText(text, `Utility ${points.map(([latency, utility]) => `${utility} at ${latency} s`).join(", ")}.`);
    const line = points.map(([latency, utility], index) => `${index ? "L" : "M"}${x(latency)},${y(utility)}`).join("");
    const last = points.at(-1);
    const axis = drawn("path", { class: "axis", d: `M${EDGE},${EDGE}V${HEIGHT - EDGE}H${WIDTH - EDGE}`, fill: "none" });
    const top = drawn("text", { x: 2, y: EDGE + 4 });
    setText(top, "1");
    const end = drawn("text", { x: WIDTH - EDGE, y: HEIGHT - 5, "text-anchor": "end" });
    setText(end, `${Number(span.toPrecision(3))} s`);
    svg.append(axis, top, end, drawn("path", { class: "line line-1", d: `${line}H${Math.max(x(last[0]), WIDTH - EDGE)}`, fill: "none" }));
    points.forEach(([latency, utility], index) => {
      const dot = drawn("circle", { cx: x(latency), cy: y(utility), r: 8, class: "dot", tabindex: 0, role: "slider", "aria-label": `Point ${index + 1}`, "aria-valuetext": `${latency} s, utility ${utility}`, "aria-valuenow": utility, "aria-valuemin": 0, "aria-valuemax": 1 });
      dot.addEventListener("pointerdown", (event) => drag(event, index));
      dot.addEventListener("keydown", (event) => {
        const moves = { ArrowLeft: [-STEP * span, 0], ArrowRight: [STEP * span, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
        const move = moves[event.key];
        if (!move) return;
        event.preventDefault();
        touch(placed(points, index, latency + move[0], utility + move[1]));
        svg.querySelectorAll(".dot")[index].focus();
      });
      svg.append(dot);
    });
  }

  function drag(event, index) {
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    const move = (at) => {
      const box = svg.getBoundingClientRect();
      const latency = (((at.clientX - box.left) / box.width) * WIDTH - EDGE) / (WIDTH - 2 * EDGE) * span;
      const utility = (HEIGHT - EDGE - ((at.clientY - box.top) / box.height) * HEIGHT) / (HEIGHT - 2 * EDGE);
      touch(placed(points, index, latency, utility));
    };
    const end = () => {
      svg.removeEventListener("pointermove", move);
      svg.removeEventListener("pointerup", end);
      svg.removeEventListener("pointercancel", end);
      fit();
      draw();
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
  }

  function fit() {
    span = points === null ? 1 : Math.max(0.1, points.at(-1)[0] * 1.25);
  }

  add.addEventListener("click", () => {
    const next = points === null ? [[0, 1], [1, 1], [2, 0]] : [...points, [Number((points.at(-1)[0] + span / 5).toFixed(3)), points.at(-1)[1]]];
    points = next;
    fit();
    touch(next);
  });
  remove.addEventListener("click", () => touch(points.slice(0, -1)));
  none.addEventListener("click", () => touch(null));

  return {
    node,
    points: () => points,
    set(next) {
      points = next === null ? null : next.map((point) => [...point]);
      fit();
      draw();
    },
  };
}
