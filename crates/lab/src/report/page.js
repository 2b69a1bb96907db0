"use strict";
(function () {
  const root = document.documentElement;
  // A fault is visible to whoever looks at the page with a program.
  window.addEventListener("error", (event) => { root.dataset.error = event.message; });
  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
  });
  if (location.hash === "#dark") root.dataset.theme = "dark";
  root.dataset.ready = String(document.querySelectorAll("figure").length);
})();
