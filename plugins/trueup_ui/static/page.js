// What a page gains where scripts run: forms that send themselves, times in the reader's zone, and
// news while runs are at work. Without scripts every page still works.
import { showCurves } from "./charts.js";

document.documentElement.classList.add("scripted");

export function prepare(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    time.title = time.dateTime;
    time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
  for (const tick of root.querySelectorAll("[data-time]")) {
    tick.textContent = new Date(Number(tick.dataset.time)).toLocaleDateString(undefined, { dateStyle: "medium" });
  }
  for (const matrix of root.querySelectorAll("[data-outlook]")) showSeedsNeeded(matrix);
  for (const section of root.querySelectorAll("[data-curves]")) showCurves(section);
}

// How many more seeds an open pair needs is simulated, which takes a while the first time.
async function showSeedsNeeded(matrix) {
  const cells = [...matrix.querySelectorAll("[data-open]")];
  if (!cells.length) return;
  const answer = await fetch(matrix.dataset.outlook).then((reply) => reply.json());
  for (const cell of cells) cell.textContent = answer[cell.dataset.open] ?? cell.textContent;
}

document.addEventListener(
  "toggle",
  async (event) => {
    const { markdown } = event.target.dataset ?? {};
    if (!markdown || !event.target.open) return;
    event.target.querySelector("textarea").value = await fetch(markdown).then((reply) => reply.text());
  },
  true,
);

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-submit]");
  if (form && event.target.matches("select")) form.requestSubmit();
});

prepare(document);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  source.select();
  await navigator.clipboard?.writeText(source.value).catch(() => {});
  button.textContent = "Copied";
});

// Asks every few seconds, while the page is looked at, whether there is anything new; then the middle
// of the page is replaced, and what had the focus keeps it.
const PAUSE = 5000;

async function lookForNews() {
  const { version, news } = document.body.dataset;
  if (!document.hidden && news) {
    const answer = await fetch(news).then((reply) => (reply.ok ? reply.json() : null)).catch(() => null);
    if (answer && answer.version !== version) await refresh(answer.version);
  }
  setTimeout(lookForNews, PAUSE);
}

async function refresh(version) {
  const text = await fetch(location.href).then((reply) => reply.text());
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
  const main = document.querySelector("main");
  const busy = document.activeElement?.closest("form, details, textarea");
  if (!fresh || (busy && main.contains(busy))) return;
  const place = [...main.querySelectorAll("a, button, select, input")].indexOf(document.activeElement);
  main.replaceChildren(...document.adoptNode(fresh).childNodes);
  if (place >= 0) [...main.querySelectorAll("a, button, select, input")][place]?.focus();
  document.body.dataset.version = version;
  prepare(main);
  document.getElementById("news").textContent = `Updated at ${new Date().toLocaleTimeString()}`;
}

setTimeout(lookForNews, PAUSE);
