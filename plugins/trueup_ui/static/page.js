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
  for (const section of root.querySelectorAll("[data-curves]")) showCurves(section);
}

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
