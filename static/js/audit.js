// The live list: paused by a button, and by itself while somebody points at an entry or is in one.
(() => {
  const rows = document.querySelector("#entries tbody");
  const said = document.querySelector("[data-followed]");
  const button = document.querySelector("[data-pause]");
  const MOST = 200;
  let paused = false;
  if (!rows || !said || !button) return;
  button.hidden = false;

  function pointed() {
    return rows.matches(":hover") || rows.contains(document.activeElement);
  }

  function say(words) {
    if (said.textContent !== words) said.textContent = words;
  }

  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    say(paused ? said.dataset.paused : said.dataset.on);
  });

  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt.id !== "feed") return;
    if (paused || pointed()) event.preventDefault();
    say(paused ? said.dataset.paused : pointed() ? said.dataset.pointed : said.dataset.on);
  });

  document.body.addEventListener("htmx:afterSwap", () => {
    while (rows.rows.length > MOST) rows.deleteRow(-1);
  });
})();
