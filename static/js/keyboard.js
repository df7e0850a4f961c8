// Keys that work on every page. Ctrl/⌘-K always; keys of a single letter only where nobody types,
// and not for those who switched them off (they get in the way of speech input).
(() => {
  const STORE = "keys";
  const GOING_MS = 1500;
  const choice = document.querySelector("[data-keys]");
  let going = 0;

  function letters() {
    return localStorage.getItem(STORE) !== "off";
  }

  function open(name) {
    document.dispatchEvent(new CustomEvent("shortcut:open", { detail: name }));
  }

  function places() {
    return [...document.querySelectorAll(".tabs [data-key]")];
  }

  function go(key) {
    const place = places().find((link) => link.dataset.key === key);
    place?.click();
    return Boolean(place);
  }

  function typing(event) {
    return event.target.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return open("palette");
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!letters() || typing(event) || document.querySelector("dialog[open]")) return;

    const then = Date.now() - going < GOING_MS;
    going = 0;
    if (then && go(event.key)) return event.preventDefault();
    const named = { "/": "palette", "?": "shortcuts" }[event.key];
    if (named) {
      event.preventDefault();
      open(named);
    } else if (event.key === "g") {
      going = Date.now();
    } else {
      // What a page does with its own keys, such as the queue.
      const own = new CustomEvent("shortcut:key", { detail: event.key, cancelable: true });
      if (!document.dispatchEvent(own)) event.preventDefault();
    }
  });

  const sheet = document.querySelector("[data-goto]");
  for (const link of sheet ? places() : []) {
    const row = document.createElement("div");
    const keys = document.createElement("dt");
    for (const key of ["g", link.dataset.key]) {
      const kbd = document.createElement("kbd");
      kbd.textContent = key;
      keys.append(kbd, " ");
    }
    const name = document.createElement("dd");
    name.textContent = link.firstElementChild.nextSibling.textContent.trim();
    row.append(keys, name);
    sheet.append(row);
  }
  if (choice) {
    choice.checked = letters();
    choice.addEventListener("change", () => localStorage.setItem(STORE, choice.checked ? "on" : "off"));
  }
})();
