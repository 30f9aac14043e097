// Numbers as text. A value that is not known is a dash.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(value) {
  if (value == null) return "–";
  return value < 1e6 ? WHOLE.format(value) : `${Number((value / 1e6).toPrecision(3))} M`;
}

export function seconds(value) {
  if (value == null) return "–";
  if (value === 0) return "0 s";
  if (value < 1e-6) return `${Number((value * 1e9).toPrecision(2))} ns`;
  if (value < 0.001) return `${Number((value * 1e6).toPrecision(2))} µs`;
  if (value < 0.9995) return `${Number((value * 1000).toPrecision(3))} ms`;
  if (value < 100) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  if (value < 6000) return `${(value / 60).toFixed(1)} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

export function rate(value) {
  if (value == null) return "–";
  return `${value < 10 ? Number(value.toPrecision(2)) : WHOLE.format(value)}/s`;
}

export function number(value) {
  if (value == null) return "–";
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(1);
  return value < 1000 ? String(Number(value.toPrecision(3))) : WHOLE.format(value);
}

export function percent(value) {
  if (value == null) return "–";
  const share = value * 100;
  return `${share < 10 ? Number(share.toPrecision(2)) : share.toFixed(0)} %`;
}

export function dateTime(at_s) {
  return new Date(at_s * 1000).toLocaleString([], { hourCycle: "h23", dateStyle: "short", timeStyle: "medium" });
}

export function time(at_s) {
  return new Date(at_s * 1000).toLocaleTimeString([], { hourCycle: "h23" });
}

/** Return a singular or plural with its number. */
export function some(value, word) {
  const plural = word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`;
  return `${count(value)} ${value === 1 ? word : plural}`;
}
