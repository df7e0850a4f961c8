// Ctrl/⌘-K goes to the search box; j and k walk a list of cards while the focus is in it
// (letters alone do nothing elsewhere: they would get in the way of speech input).
document.addEventListener("keydown", (event) => {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    const search = document.querySelector("input[type=search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
    return;
  }

  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) return;
  const step = { j: 1, k: -1 }[event.key];
  const card = step && event.target.closest("[data-card]");
  if (!card) return;
  const cards = [...document.querySelectorAll("[data-card]")];
  cards[cards.indexOf(card) + step]?.focus();
});
