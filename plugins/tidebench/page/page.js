// Links to Airflow's own pages open there, not in the frame that this page has inside of it. The
// frame may not navigate the window around it, so a link in that window does.
"use strict";

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-airflow]");
  if (!link || window.top === window || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const outside = window.top.document.createElement("a");
  outside.href = link.href;
  window.top.document.body.append(outside);
  outside.click();
  outside.remove();
});

// Enter in the field of tags is for them: alone it would be for the first button of the form, which
// compares.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.name !== "add_tags") return;
  event.preventDefault();
  event.target.form.requestSubmit(event.target.nextElementSibling);
});

// Buttons that do something with the chosen runs are off until one is chosen.
function count() {
  const all = document.getElementById("choose-all");
  if (!all) return;
  const boxes = [...document.querySelectorAll("input[name=run]")];
  const chosen = boxes.filter((box) => box.checked).length;
  all.hidden = false;
  all.checked = chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
  document.getElementById("count").textContent = chosen ? `${chosen} chosen` : "";
  for (const button of document.querySelectorAll("[data-chosen]")) button.disabled = !chosen;
}
document.addEventListener("change", (event) => {
  if (event.target.id === "choose-all")
    for (const box of document.querySelectorAll("input[name=run]")) box.checked = event.target.checked;
  count();
});
window.addEventListener("pageshow", count); // a browser that goes back keeps what was chosen

// The list anew, once a run has left what is under way: it may be published. What is chosen stays so;
// as long as somebody types in it the list waits.
let outdated = false;
async function refresh() {
  const runs = document.getElementById("runs");
  if (runs.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), select")) return;
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("runs");
  const chosen = new Set([...runs.querySelectorAll("input[name=run]:checked")].map((box) => box.value));
  runs.replaceWith(fresh); // escaped where it was made, as the page itself was
  for (const box of fresh.querySelectorAll("input[name=run]")) box.checked = chosen.has(box.value);
  count();
  outdated = false;
}

// What is under way is asked for again every few seconds, as long as somebody looks.
const way = document.getElementById("under-way");
if (way) {
  const names = () => new Set([...way.querySelectorAll("[data-dag-run]")].map((row) => row.dataset.dagRun));
  let seen = "";
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(way.dataset.from, { credentials: "same-origin" });
      if (!answer.ok) return;
      const fresh = await answer.text();
      if (fresh !== seen) { // whoever is on a link of it stays there
        seen = fresh;
        const before = names();
        way.innerHTML = fresh;
        way.hidden = !way.firstElementChild;
        const now = names();
        outdated ||= [...before].some((name) => !now.has(name));
      }
      if (outdated) await refresh();
    } catch { /* the next one may be answered */ }
  }, 1000 * Number(way.dataset.everyS));
}
