// Light or dark: the reader's system decides until the button does. Pictures that are drawn by script are told.
// `paper`: what A4 and Letter have room for; when the browser says that it prints, the layout is still that of the screen.
const Page = { pictures: [], paper: 680, redraw() { for (const draw of Page.pictures) draw(); } };
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Show the page light" : "Show the page dark");
    Page.redraw();
  };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; show(); });
  system.addEventListener("change", show);
  addEventListener("beforeprint", () => { Page.printing = true; Page.redraw(); });
  addEventListener("afterprint", () => { Page.printing = false; Page.redraw(); });
  // the exact value of what is shown with three digits
  for (const number of document.querySelectorAll("data[data-json]")) {
    number.title = number.dataset.json.split("/").pop() + " = " + number.value;
  }
  show();
})();
