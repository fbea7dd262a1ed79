// The theme chosen in Airflow (User > Appearance) is the theme here. Airflow keeps it in the storage of
// this site; "system" and nothing mean what the system prefers. Loaded before the page is drawn.
"use strict";

(() => {
  const root = document.documentElement;
  const follow = () => {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
    // Reports are served without scripts: the server puts the theme into them.
    document.cookie = `tidebench_theme=${root.dataset.theme ?? ""}; path=/; SameSite=Strict`;
    root.dispatchEvent(new Event("theme"));
  };
  follow();
  addEventListener("storage", (event) => event.key === "theme" && follow());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
})();
