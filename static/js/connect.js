// A token typed here, or just issued, is put into the snippets on this page. It is never sent.
(() => {
  const PLACE = "csa_…";

  function fill(token) {
    for (const snippet of document.querySelectorAll("[data-snippet]")) {
      snippet.dataset.text ??= snippet.textContent;
      snippet.textContent = snippet.dataset.text.replaceAll(PLACE, token || PLACE);
    }
  }

  function issued() {
    const token = document.getElementById("token");
    if (token) fill(token.textContent.trim());
  }

  const box = document.querySelector("[data-fill]");
  if (box) {
    box.hidden = false;
    box.querySelector("input").addEventListener("input", (event) => fill(event.target.value.trim()));
  }
  document.body.addEventListener("htmx:load", issued);
})();
