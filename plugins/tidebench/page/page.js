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
