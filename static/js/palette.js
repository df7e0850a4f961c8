// The palette and the sheet of shortcuts: dialogs that [data-open] buttons and keys open. Without
// this file the palette is a page of its own, at the address of its link.
(() => {
  const palette = document.getElementById("palette");
  const box = document.getElementById("palette-text");

  function open(name) {
    const dialog = document.getElementById(name);
    if (!dialog || document.querySelector("dialog[open]")) return;
    dialog.showModal();
    if (dialog !== palette) return;
    box.value = "";
    box.focus();
    box.dispatchEvent(new Event("open"));
  }

  function links() {
    return [...palette.querySelectorAll(".places a")];
  }

  // Down and up walk from the box through what was found, and back.
  function walk(event) {
    const stops = [box, ...links()];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const at = stops.indexOf(document.activeElement);
      stops[Math.max(0, Math.min(stops.length - 1, at + step))].focus();
    } else if (event.key === "Enter" && event.target === box && links().length && !box.classList.contains("htmx-request")) {
      event.preventDefault();
      links()[0].click();
    } else if (event.key.length === 1 && event.target.matches("a") && !event.ctrlKey && !event.metaKey) {
      box.focus();
    }
  }

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener) {
      event.preventDefault();
      open(opener.dataset.open);
    }
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
    // The backdrop is the dialog itself; everything else is in it.
    if (event.target.matches("dialog.palette, dialog.sheet")) event.target.close();
  });
  document.addEventListener("shortcut:open", (event) => open(event.detail));
  palette.addEventListener("keydown", walk);
  for (const button of document.querySelectorAll("[data-open][hidden]")) button.hidden = false;
})();
