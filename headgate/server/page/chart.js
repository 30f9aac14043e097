// Small line charts in SVG.

import { drawn, setText } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 56;

/**
 * Return a chart of one or more lines over time: `update(points, limit)` draws it again.
 *
 * A point is [at_s, value, ...]: one value for each line, null where there is none.
 */
export function lineChart(label, colors = ["line-1", "line-2"]) {
  const title = drawn("title");
  const lines = colors.map((name) => drawn("path", { class: `line ${name}`, fill: "none" }));
  const target = drawn("line", { class: "target", x1: 0, x2: WIDTH });
  const svg = drawn(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", preserveAspectRatio: "none" },
    title, target, ...lines,
  );
  return {
    node: svg,
    update(points, limit = null) {
      const values = points.flatMap((point) => point.slice(1)).filter((value) => value != null);
      const most = Math.max(...values, limit ?? 0, 1e-9) * 1.08;
      const [first, last] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 1];
      const x = (at_s) => ((at_s - first) / Math.max(last - first, 1e-9)) * WIDTH;
      const y = (value) => HEIGHT - 2 - (value / most) * (HEIGHT - 4);
      lines.forEach((line, index) => {
        let path = "";
        let pen = "M";
        for (const point of points) {
          const value = point[index + 1];
          if (value == null) pen = "M";
          else {
            path += `${pen}${x(point[0]).toFixed(1)},${y(value).toFixed(1)}`;
            pen = "L";
          }
        }
        line.setAttribute("d", path);
      });
      target.setAttribute("visibility", limit == null ? "hidden" : "visible");
      if (limit != null) {
        target.setAttribute("y1", y(limit));
        target.setAttribute("y2", y(limit));
      }
      setText(title, label);
    },
  };
}
