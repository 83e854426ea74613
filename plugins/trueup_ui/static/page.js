// What a page gains where scripts run: forms that send themselves, times in the reader's zone, and
// news while runs are at work. Without scripts every page still works.
document.documentElement.classList.add("scripted");

export function prepare(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    time.title = time.dateTime;
    time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-submit]");
  if (form && event.target.matches("select")) form.requestSubmit();
});

prepare(document);
