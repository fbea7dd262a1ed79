// Curves of several runs over each other: hover reads all of them, dragging zooms all of them.
"use strict";

(() => {
  const section = document.getElementById("curves");
  const DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3], [5, 2]]; // with eight colours forty that differ
  const COLOURS = {
    light: ["#0b6e8a", "#b4470f", "#5b4bb5", "#2f7d32", "#a8326f", "#7a5c00", "#37474f", "#c2185b"],
    dark: ["#5cc8e6", "#f5a36b", "#b3a6ff", "#86d489", "#f39ac7", "#e3c44f", "#b8c4ca", "#ff8fb2"],
  };
  const HEIGHT = 150;
  let data, plots = [], shown = [];

  const theme = () => document.documentElement.dataset.theme
    ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const colourOf = (k) => COLOURS[theme()][k % 8];
  const dashOf = (k) => DASHES[k % DASHES.length];
  const read = (value) => value == null ? "-" : value.toLocaleString("en", { maximumSignificantDigits: 4 });

  /** Marks of an axis; of hundreds of thousands on they have no room as a whole: 200K. */
  function marked(_, marks) {
    const how = marks.at(-1) < 1e5 ? {} : { notation: "compact", maximumSignificantDigits: 4 };
    return marks.map((mark) => mark.toLocaleString("en", how));
  }

  /** What uPlot draws of one case: a line, and a band where it is a mean. */
  function seriesOf(k, label, own, columns) {
    columns.push(own.mean);
    const made = [{ label, stroke: colourOf(k), dash: dashOf(k), width: 1.8, show: shown[k], points: { show: false } }];
    for (const edge of own.low ? ["high", "low"] : []) {
      columns.push(own[edge]);
      made.push({ label: `${label}, ${edge}`, stroke: "transparent", show: shown[k], points: { show: false } });
    }
    return made;
  }

  /** Where an axis ends: one run of more than three times the median peak, which would make lines on
      the ground of all others, leaves the chart. As the reports do (figures/style.py). A band is shown
      as far up as that. */
  function edgeOf(chart) {
    const peaks = chart.series.map((own, k) => (shown[k] ? Math.max(0, ...own.mean) : 0));
    const some = peaks.filter((peak) => peak > 0).sort((a, b) => a - b);
    const median = (some[(some.length - 1) >> 1] + some[some.length >> 1]) / 2;
    const most = 3 * median, stays = (_, k) => shown[k] && !(peaks[k] > most);
    const bands = Math.max(0, ...chart.series.filter(stays).flatMap((own) => own.high ?? []));
    const edge = Math.max(Math.min(bands, most || 0), ...some.filter((peak) => peak <= most));
    return { edge, leaving: data.labels.filter((_, k) => peaks[k] > most) };
  }

  function draw(chart, place) {
    const { edge } = edgeOf(chart);
    const ink = getComputedStyle(section.querySelector(".bar")).color;
    const line = getComputedStyle(place.parentNode).borderTopColor;
    const columns = [data.x], series = [{ label: "minute" }], bands = [];
    chart.series.forEach((own, k) => {
      if (own.low) bands.push({ series: [series.length + 1, series.length + 2], fill: `${colourOf(k)}2e` });
      series.push(...seriesOf(k, data.labels[k], own, columns));
    });
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui" };
    return new uPlot({
      width: place.clientWidth, height: HEIGHT, series, bands,
      scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (Math.min(high, edge) || 1) * 1.05] } },
      axes: [{ ...axis, label: "minute", labelSize: 18, size: 36, labelFont: "12px system-ui" }, { ...axis, size: 56, values: marked }],
      legend: { show: false },
      cursor: { sync: { key: "tidebench", scales: ["x", null] }, drag: { x: true, y: false } },
      hooks: {
        setScale: [(plot, key) => key === "x" && together(plot)],
        setCursor: [(plot) => tell(plot.cursor.idx)],
      },
    }, columns, place);
  }

  /** All show the same minutes, as many as there are between two points: of fewer and fewer uPlot would
      once look for ticks without end. */
  let following = false;
  function together(plot) {
    if (following) return;
    const { min, max } = plot.scales.x;
    const middle = (min + max) / 2, half = data.step_s / 120;
    if (max - min < 1.98 * half) { // not at once: it is about to draw what it has
      queueMicrotask(() => plot.setScale("x", { min: middle - half, max: middle + half }));
      return;
    }
    following = true;
    for (const other of plots) if (other !== plot) other.setScale("x", { min, max });
    following = false;
  }

  function zoom(how) {
    if (!plots.length) return;
    const [first, last] = [data.x[0], data.x.at(-1)];
    let { min, max } = plots[0].scales.x;
    if (how === "all") [min, max] = [first, last];
    else {
      const middle = plots[0].cursor.idx == null ? (min + max) / 2 : data.x[plots[0].cursor.idx];
      const half = (max - min) * Number(how) / 2;
      [min, max] = [Math.max(first, middle - half), Math.min(last, middle + half)];
    }
    plots[0].setScale("x", { min, max });
  }

  function average(values) {
    const known = values.filter((value) => value != null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  }

  /** The table above the curves is their legend, and reads them where the pointer is, else on average. */
  function tell(index) {
    const at = section.querySelector("[data-at]");
    at.textContent = index == null ? "Run, on average over time" : `Run, at minute ${read(data.x[index])}`;
    for (const cell of section.querySelectorAll("[data-chart]")) {
      const own = data.charts[cell.dataset.chart].series[cell.dataset.series];
      const value = index == null ? average(own.mean) : own.mean[index];
      const half = index == null || value == null || !own.high ? null : own.high[index] - value;
      cell.textContent = read(value) + (half ? ` ± ${read(half)}` : "");
    }
  }

  function element(name, attributes = {}, ...children) {
    const space = name === "svg" || name === "line" ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function legend() {
    const head = element("tr", {}, element("th", { "data-at": "" }, "Run"),
      ...data.charts.map((chart) => element("th", { class: "n" }, chart.title)));
    const rows = data.labels.map((label, k) => {
      const box = element("input", { type: "checkbox" });
      box.checked = shown[k];
      box.addEventListener("change", () => { shown[k] = box.checked; redraw(); });
      const line = element("line", {
        x1: 0, x2: 48, y1: 6, y2: 6, stroke: colourOf(k), "stroke-width": 2.5, "stroke-dasharray": dashOf(k).join(" "),
      });
      return element("tr", {},
        element("th", {}, element("label", {}, box, element("svg", { viewBox: "0 0 48 12", "aria-hidden": "true" }, line), label)),
        ...data.charts.map((_, c) => element("td", { class: "n", "data-chart": c, "data-series": k })));
    });
    const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
    section.querySelector(".legend").replaceChildren(table);
  }

  /** What a reader who does not see the curves hears; the table above has the same figures. */
  function spoken(chart) {
    const means = chart.series.map((own, k) => `${data.labels[k]} ${read(average(own.mean))}`);
    return `${chart.title} over ${read(data.x.at(-1))} minutes, on average: ${means.join("; ")}`;
  }

  function heading(chart) {
    const { leaving } = edgeOf(chart);
    return leaving.length ? `${chart.title}; leaves the chart: ${leaving.join(", ")}` : chart.title;
  }

  function redraw() {
    const kept = plots.length ? { ...plots[0].scales.x } : null;
    for (const plot of plots) plot.destroy();
    plots = [];
    const places = data.charts.map((chart) => element("div", { class: "chart", role: "img", "aria-label": spoken(chart) }, element("h3", {}, heading(chart)), element("div")));
    section.querySelector(".charts").replaceChildren(...places);
    plots = data.charts.map((chart, c) => draw(chart, places[c].lastChild));
    if (kept) plots[0].setScale("x", { min: kept.min, max: kept.max });
    tell(null);
  }

  async function begin() {
    const answer = await fetch(section.dataset.from, { credentials: "same-origin" });
    if (!answer.ok) return;
    data = await answer.json();
    shown = data.labels.map(() => true);
    section.hidden = false;
    legend();
    redraw();
    section.querySelector(".step").textContent =
      `Every point is the mean of the ${read(data.step_s)} seconds before it. Bands are 95 % intervals over seeds.`;
    section.addEventListener("click", (event) => {
      const button = event.target.closest("[data-zoom]");
      if (button) zoom(button.dataset.zoom);
    });
    document.documentElement.addEventListener("theme", () => { legend(); redraw(); });
    new ResizeObserver(() => plots.forEach((plot) => {
      const width = plot.root.parentNode.clientWidth;
      if (width && width !== plot.width) plot.setSize({ width, height: HEIGHT });
    })).observe(section);
  }

  if (section && window.uPlot) begin();
})();
