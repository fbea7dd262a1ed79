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

// What comes in the place of a part of the page keeps what somebody has typed, chosen and opened in it.
function kept(part) {
  const nameOf = (one) => one.closest("[data-dag-run]")?.dataset.dagRun ?? (one.type === "checkbox" ? one.value : one.name);
  return new Map([...part.querySelectorAll("input:not([type=hidden]), select, details")].map((one) => [nameOf(one), one]));
}
function exchange(part, fresh) {
  const at = part.contains(document.activeElement) && document.activeElement.outerHTML;
  const before = kept(part);
  for (const [name, one] of kept(fresh)) {
    const was = before.get(name);
    if (was) [one.value, one.checked, one.open] = [was.value, was.checked, was.open];
  }
  part.replaceWith(fresh); // escaped where it was made, as the page itself was
  count();
  [...fresh.querySelectorAll("a, button, input, select, summary")].find((one) => one.outerHTML === at)?.focus();
}

async function ask(address) {
  const answer = await fetch(address, { credentials: "same-origin" });
  if (answer.status === 401) location.reload(); // to the log-in, instead of showing what was once
  return answer.ok ? answer.text() : null;
}

// The list anew, once a run has left what is under way: it may be published. As long as somebody types
// in it the list waits.
let outdated = false;
async function refresh() {
  const runs = document.getElementById("runs");
  if (runs.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), select")) return;
  const text = await ask(location.href);
  if (text === null) return;
  exchange(runs, new DOMParser().parseFromString(text, "text/html").getElementById("runs"));
  outdated = false;
}

// What is under way is asked for again every few seconds, as long as somebody looks.
let way = document.getElementById("under-way");
if (way) {
  const names = () => new Set([...way.querySelectorAll("[data-dag-run]")].map((row) => row.dataset.dagRun));
  let seen = "";
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const text = await ask(way.dataset.from);
      if (text === null) return;
      if (text !== seen) {
        seen = text;
        const before = names();
        const fresh = way.cloneNode(false);
        fresh.innerHTML = text;
        fresh.hidden = !fresh.firstElementChild;
        exchange(way, fresh);
        way = fresh;
        const now = names();
        outdated ||= [...before].some((name) => !now.has(name));
      }
      if (outdated) await refresh();
    } catch { /* the next one may be answered */ }
  }, 1000 * Number(way.dataset.everyS));
}
