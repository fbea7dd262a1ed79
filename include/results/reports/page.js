// A field that shows the runs with all of the words that are typed in their row, in every table.
"use strict";

const field = document.createElement("input");
field.type = "search";
field.placeholder = "Find runs: words of their rows";
field.setAttribute("aria-label", field.placeholder);
document.querySelector("nav").after(field);
const folds = [...document.querySelectorAll("details.all")];
const rows = folds.flatMap((fold) => [...fold.querySelectorAll("tbody tr")]);
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  for (const fold of folds) fold.open = field.value !== "";
});
