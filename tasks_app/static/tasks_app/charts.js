/** Draws the table of numbers of the overview as charts, in the colours of the theme, and again when either changes. */
"use strict";
(() => {
  const HEIGHT = 190;
  const LINES = { ended: ["ok", "bad", "off"], ran: ["low", "mid", "high"], waited: ["low", "mid", "high"] };
  const DASHES = [[], [7, 3], [2, 3]]; // colour is not the only sign
  const drawn = [];

  const colour = (name) => getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();
  const value = (cell) => (cell.dataset.value === undefined ? null : Number(cell.dataset.value));

  /** Times of day as the table writes them, or by the clock here where the browser does not know that zone. */
  function clockOf(zone) {
    const hours = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    let format;
    try {
      format = new Intl.DateTimeFormat("en", { ...hours, timeZone: zone });
    } catch {
      format = new Intl.DateTimeFormat("en", hours);
    }
    return (at) => format.format(at * 1000);
  }

  function seconds(value) {
    if (value === null) return "–";
    if (value < 1) return `${Math.round(value * 1000)} ms`;
    return value < 120 ? `${Number(value.toPrecision(3))} s` : `${Number((value / 60).toPrecision(3))} min`;
  }

  /** The columns of the table that belong to a chart, with a gap wherever nothing ended. */
  function columns(section, chart) {
    const step = Number(section.dataset.step);
    const heads = [...section.querySelectorAll("thead tr:last-child th")];
    const chosen = heads.flatMap((head, at) => (head.dataset.chart === chart ? [{ name: head.textContent, at }] : []));
    const rows = new Map([...section.querySelectorAll("tbody tr[data-at]")].map((row) => [Number(row.dataset.at), row.querySelectorAll("td")]));
    const last = Math.floor(Date.now() / 1000 / step) * step;
    const first = last - (step === 60 ? 60 : 24) * step;
    const times = [];
    for (let at = first; at <= last; at += step) times.push(at);
    const none = chart === "ended" ? 0 : null;
    const series = chosen.map(({ at }) => times.map((time) => (rows.has(time) ? value(rows.get(time)[at]) : none)));
    return { names: chosen.map(({ name }) => name), data: [times, ...series] };
  }

  function options(figure, names, clock) {
    const axis = { stroke: colour("body-quiet-color"), grid: { stroke: colour("hairline-color"), width: 1 }, ticks: { stroke: colour("hairline-color"), width: 1 } };
    const format = figure.dataset.unit === "s" ? seconds : (value) => (value === null ? "–" : String(value));
    const line = (label, at) => {
      const stroke = colour(`asyncpoll-${LINES[figure.dataset.chart][at]}`);
      return { label, stroke, dash: DASHES[at], width: 1.5, spanGaps: false, points: { show: figure.dataset.unit === "s", size: 5, fill: stroke }, value: (_, value) => format(value) };
    };
    return {
      width: figure.clientWidth,
      height: HEIGHT,
      cursor: { points: { size: 7 } },
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => (tick === 0 ? "0" : format(tick))), incrs: figure.dataset.unit === "s" ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5] }],
      series: [{ label: "From", value: (_, at) => (at === null ? "–" : clock(at)) }, ...names.map(line)],
    };
  }

  function draw() {
    for (const plot of drawn.splice(0)) plot.destroy();
    const section = document.querySelector(".asyncpoll-charts");
    const clock = clockOf(section?.dataset.zone);
    for (const figure of section?.querySelectorAll("figure") ?? []) {
      const { names, data } = columns(section, figure.dataset.chart);
      drawn.push(new uPlot(options(figure, names, clock), data, figure));
    }
  }

  let pending = 0;
  const soon = () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(draw);
  };
  document.addEventListener("DOMContentLoaded", () => {
    draw();
    addEventListener("resize", soon);
    document.addEventListener("asyncpoll:refreshed", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
    new MutationObserver(soon).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  });
})();
