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

  const options = () => [...palette.querySelectorAll(".places a")];
  const chosen = () => palette.querySelector(".places [aria-selected=true]");

  // The box keeps the focus and names the option that Enter opens (ARIA's combobox).
  function choose(one) {
    for (const other of options()) other.setAttribute("aria-selected", other === one);
    one.scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-activedescendant", one.id);
  }

  function dress() {
    const found = options();
    box.setAttribute("aria-expanded", found.length > 0);
    box.removeAttribute("aria-activedescendant");
    if (!found.length) return;
    const list = found[0].closest(".places");
    list.role = "listbox";
    list.id = box.getAttribute("aria-controls");
    list.setAttribute("aria-label", box.getAttribute("aria-label"));
    found.forEach((one, n) => {
      one.parentElement.role = "presentation";
      one.role = "option";
      one.id = `palette-option-${n}`;
      one.tabIndex = -1;
    });
    choose(found[0]);
  }

  function walk(event) {
    const found = options();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.target !== box || !found.length) return;
    if (step) {
      event.preventDefault();
      choose(found[(found.indexOf(chosen()) + step + found.length) % found.length]);
    } else if (event.key === "Enter" && !box.classList.contains("htmx-request")) {
      event.preventDefault();
      chosen().click();
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
  palette.addEventListener("htmx:afterSwap", dress);
  for (const button of document.querySelectorAll("[data-open][hidden]")) button.hidden = false;
})();
