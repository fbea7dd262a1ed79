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

// What is under way is asked for again every few seconds, as long as somebody looks.
const way = document.getElementById("under-way");
if (way) {
  let seen = "";
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(way.dataset.from, { credentials: "same-origin" });
      if (!answer.ok) return;
      const fresh = await answer.text();
      if (fresh === seen) return; // whoever is on a link of it stays there
      seen = fresh;
      way.innerHTML = fresh; // escaped where it was made, as the page itself was
      way.hidden = !way.firstElementChild;
    } catch { /* the next one may be answered */ }
  }, 1000 * Number(way.dataset.everyS));
}
