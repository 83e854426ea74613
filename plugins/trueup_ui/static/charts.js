// Charts on a canvas, by uPlot: steps of seeds, and the time line of a monitored model. Colours come
// from the style sheet, so that they follow the reader's light or dark scheme.
/* global uPlot */

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const faint = (name, share) => `color-mix(in srgb, ${colour(name)} ${share}%, transparent)`;
const scheme = matchMedia("(prefers-color-scheme: dark)");

const WHOLE = [1, 2, 5].flatMap((k) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((p) => k * p)).sort((a, b) => a - b);

function axes(x) {
  const line = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui" };
  return [
    { ...line, ...x },
    { ...line, size: (_, values) => 16 + 7 * Math.max(4, ...(values ?? []).map((v) => v.length)), values: (_, ticks) => ticks.map((v) => String(Number(v.toPrecision(6)))) },
  ];
}

// Draws with `options(width)` and `data`, anew when width or colours change.
export function draw(home, options, data) {
  let chart = null;
  const again = () => {
    chart?.destroy();
    chart = new uPlot({ ...options(), width: home.clientWidth, height: 320 }, data, home);
  };
  again();
  let width = home.clientWidth;
  new ResizeObserver(() => {
    if (home.clientWidth !== width) {
      width = home.clientWidth;
      chart.setSize({ width, height: 320 });
    }
  }).observe(home);
  scheme.addEventListener("change", again);
}

// Puts curves with steps of their own on one common row of steps.
function aligned(kinds) {
  const steps = [...new Set(kinds.flatMap((kind) => kind.curves.steps))].sort((a, b) => a - b);
  const place = (curves, values) => {
    const at = new Map(curves.steps.map((step, i) => [step, values[i]]));
    return steps.map((step) => at.get(step) ?? null);
  };
  return { steps, place };
}

function curveChart(home, answer, traces) {
  const kinds = [
    { name: "vanilla", variable: "--vanilla", curves: answer.vanilla },
    { name: "calibrated", variable: "--calibrated", curves: answer.calibrated },
  ].filter((kind) => kind.curves.steps.length);
  const { steps, place } = aligned(kinds);
  const data = [steps];
  const series = [];
  const bands = [];
  for (const kind of kinds) {
    const { curves } = kind;
    const points = { show: steps.length < 40, size: 5 };
    series.push(() => ({ label: kind.name, stroke: colour(kind.variable), width: 2, points, dash: kind.name === "vanilla" ? [6, 3] : undefined }));
    data.push(place(curves, curves.mean));
    bands.push({ series: [series.length + 2, series.length + 1], variable: kind.variable });
    for (const end of [curves.low, curves.high]) {
      series.push(() => ({ label: `${kind.name} ${end === curves.low ? "−" : "+"} sd`, stroke: "transparent", points: { show: false } }));
      data.push(place(curves, end));
    }
    for (const [seed, values] of traces ? Object.entries(curves.traces) : []) {
      series.push(() => ({ label: `${kind.name} ${seed}`, stroke: faint(kind.variable, 45), width: 1, points: { show: false } }));
      data.push(place(curves, values));
    }
  }
  const options = () => ({
    scales: { x: { time: false } },
    axes: axes({ label: "step", labelFont: "12px system-ui", labelSize: 18, incrs: WHOLE }),
    legend: { show: false },
    cursor: { drag: { x: true, y: true } },
    series: [{ label: "step" }, ...series.map((make) => make())],
    bands: bands.map((band) => ({ series: band.series, fill: faint(band.variable, 16) })),
  });
  draw(home, options, data);
}

export async function showCurves(section) {
  const home = section.querySelector(".chart");
  const note = section.querySelector("[data-curves-note]");
  const answer = await fetch(section.dataset.curves).then((reply) => reply.json());
  const steps = Math.max(answer.vanilla.steps.length, answer.calibrated.steps.length);
  if (steps < 2) {
    note.textContent = "Logged at a single step: there is no curve to draw. Log each epoch with log_evaluation(..., step=epoch).";
    return;
  }
  note.textContent = "";
  const box = section.querySelector("[data-traces]");
  const show = () => {
    home.replaceChildren();
    curveChart(home, answer, box.checked);
  };
  box.addEventListener("change", show);
  show();
}
