// Copy buttons appear only where copying works: data-copy names the element whose text it takes.
(() => {
  function reveal(root) {
    for (const button of root.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
    } catch {
      // No permission, or no secure origin: the text is marked, and Ctrl-C does the rest.
      getSelection().selectAllChildren(source);
      return;
    }
    const said = button.querySelector("[data-said]");
    said.dataset.was ??= said.textContent;
    said.textContent = button.dataset.done;
    button.dataset.copied = "";
    setTimeout(() => {
      said.textContent = said.dataset.was;
      delete button.dataset.copied;
    }, 2000);
  });

  reveal(document);
  document.body.addEventListener("htmx:load", (event) => reveal(event.target.parentElement ?? document));
})();
