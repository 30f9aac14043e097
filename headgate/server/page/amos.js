// The panel of `amos`: a slider per metric, weights that always sum to 1, scores of its policies.

import { ask } from "./api.js";
import { lineChart } from "./chart.js";
import { drawn, element, setText } from "./dom.js";
import { number } from "./format.js";
import { store } from "./store.js";

const STEPS = 1000;
const WAIT_MS = 400;
const BAND = 1000;

/**
 * Return weights in thousandths after one of them was moved: the others keep their proportions.
 *
 * They are whole numbers, so that their sum is STEPS to the digit.
 */
export function moved(weights, place, value) {
  const others = weights.reduce((sum, weight, index) => sum + (index === place ? 0 : weight), 0);
  const left = STEPS - value;
  const exact = weights.map((weight, index) => {
    if (index === place) return value;
    return others > 0 ? (weight * left) / others : left / (weights.length - 1);
  });
  const whole = exact.map(Math.floor);
  whole[place] = value;
  const order = exact.map((weight, index) => [weight - whole[index], index]).filter(([, index]) => index !== place);
  order.sort(([a, i], [b, j]) => b - a || i - j);
  let rest = STEPS - whole.reduce((sum, weight) => sum + weight, 0);
  for (const [, index] of order) {
    if (rest <= 0) break;
    whole[index] += 1;
    rest -= 1;
  }
  return whole;
}

export function amosPanel(message) {
  const sliders = element("div", { class: "sliders" });
  const overTime = element("div", {});
  const scores = element("tbody", {});
  const add = element("select", { "aria-label": "Add a metric" });
  const node = element(
    "section",
    { class: "panel", hidden: true },
    element("h2", {}, "What amos is asked for"),
    element("p", { class: "quiet" }, "The weights sum to 1: moving a slider scales the others. amos follows them from its next choice on."),
    sliders,
    element("p", { class: "buttons" }, add),
    element("table", {}, element("thead", {}, element("tr", {}, ...["policy", "score", "turns"].map((text, index) => element("th", { scope: "col", class: index ? "number" : "" }, text)))), scores),
    element("h3", {}, "Scores and who was in charge, over time"),
    overTime,
  );
  const colors = ["line-1", "line-2", "line-3", "line-4", "line-5", "line-6", "line-7"];
  let chart = null;
  let charted = "";
  let rows = [];
  let metrics = [];
  let busy = 0;
  let timer = 0;
  let shown = "";
  let wanted = [];

  /** Draw the scores of the last minutes, and a band with the policy in charge. */
  function drawHistory(names) {
    const key = names.join();
    if (key !== charted) {
      charted = key;
      chart = lineChart("Scores of the policies of amos", names.map((_, index) => colors[index % colors.length]));
      const keys = names.map((name, index) => element("span", { class: `key ${colors[index % colors.length]}` }, name));
      const band = drawn("svg", { class: "band", viewBox: `0 0 ${BAND} 10`, preserveAspectRatio: "none", role: "img" });
      overTime.replaceChildren(element("figure", {}, chart.node, band, element("figcaption", { class: "keys" }, ...keys)));
      chart.band = band;
    }
    const points = store.history.filter((point) => point.scores);
    chart.update(points.map((point) => {
      const byName = Object.fromEntries(point.scores);
      return [point.at_s, ...names.map((name) => byName[name] ?? null)];
    }));
    const [first, last] = [points[0]?.at_s ?? 0, points.at(-1)?.at_s ?? 1];
    const x = (at_s) => ((at_s - first) / Math.max(last - first, 1e-9)) * BAND;
    chart.band.replaceChildren(
      ...points.slice(0, -1).map((point, index) => {
        const place = names.indexOf(point.deciding);
        const bar = drawn("rect", { x: x(point.at_s), y: 0, width: x(points[index + 1].at_s) - x(point.at_s) + 0.5, height: 10, class: `fill ${colors[Math.max(0, place) % colors.length]}` });
        bar.append(drawn("title"));
        setText(bar.firstChild, `${point.deciding} in charge`);
        return bar;
      }),
    );
  }

  function send() {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const specification = rows.map(({ metric, quantifier, weight }) => ({ metric, quantifier, weight: weight / STEPS }));
      busy += 1;
      try {
        await ask("PUT", "specification", { specification });
        message.say(`Asked for: ${rows.map((row) => `${row.quantifier} ${row.metric} ${row.weight / STEPS}`).join(", ")}.`);
      } catch (error) {
        message.refuse(error.message);
        adopt(wanted); // the sliders show what amos is asked for, not what was refused
      }
      setTimeout(() => {
        busy -= 1; // until then the stream may still bring the old weights
      }, 3000);
    }, WAIT_MS);
  }

  /** Show a specification as sliders. */
  function adopt(specification) {
    const exact = specification.map((row) => Math.round(row.weight * STEPS));
    const weights = exact.length > 1 ? moved(exact, 0, Math.min(STEPS, exact[0])) : [STEPS];
    rows = specification.map((row, index) => ({ ...row, weight: weights[index] }));
    build();
  }

  function move(place, value) {
    const weights = moved(rows.map((row) => row.weight), place, value);
    weights.forEach((weight, index) => {
      rows[index].weight = weight;
    });
    refresh();
    send();
  }

  function change(next) {
    rows = next;
    build();
    send();
  }

  function refresh() {
    [...sliders.children].forEach((line, index) => {
      line.querySelector("input").value = rows[index].weight;
      setText(line.querySelector("output"), (rows[index].weight / STEPS).toFixed(3));
    });
  }

  function build() {
    sliders.replaceChildren(
      ...rows.map((row, place) => {
        const slider = element("input", { type: "range", min: 0, max: STEPS, step: 1, id: `slider-${row.metric}`, disabled: rows.length === 1 });
        slider.addEventListener("input", () => move(place, Number(slider.value)));
        const quantifier = element("select", { "aria-label": `Quantifier of ${row.metric}` }, new Option("minimize", "minimize"), new Option("maximize", "maximize"));
        quantifier.value = row.quantifier;
        quantifier.addEventListener("change", () => {
          row.quantifier = quantifier.value;
          send();
        });
        const remove = element("button", { type: "button", disabled: rows.length === 1, "aria-label": `Remove ${row.metric}` }, "Remove");
        remove.addEventListener("click", () => {
          const weights = moved(rows.map((other) => other.weight), place, 0);
          change(rows.map((other, index) => ({ ...other, weight: weights[index] })).filter((_, index) => index !== place));
        });
        return element("div", { class: "slider" }, element("label", { for: `slider-${row.metric}` }, row.metric), quantifier, slider, element("output", {}), remove);
      }),
    );
    const unused = metrics.filter((metric) => !rows.some((row) => row.metric === metric));
    add.replaceChildren(new Option("Add a metric …", ""), ...unused.map((metric) => new Option(metric, metric)));
    refresh();
  }

  add.addEventListener("change", () => {
    if (!add.value) return;
    const quantifier = ["output_per_s", "qos"].includes(add.value) ? "maximize" : "minimize";
    change([...rows, { metric: add.value, quantifier, weight: 0 }]);
  });

  return {
    node,
    update(amos) {
      node.hidden = amos === null;
      if (amos === null) return;
      metrics = amos.metrics;
      wanted = amos.specification;
      const key = JSON.stringify(wanted);
      if (!busy && key !== shown && !sliders.contains(document.activeElement)) {
        shown = key;
        adopt(wanted);
      }
      drawHistory(amos.scores.map((row) => row.policy));
      scores.replaceChildren(
        ...amos.scores.map((row) => element("tr", {}, element("td", {}, row.policy), element("td", { class: "number" }, number(row.score)), element("td", { class: "number" }, String(row.turns)))),
      );
    },
  };
}
