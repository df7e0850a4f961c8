// A card that was decided stays as it is, also when a slower picture of it arrives; and who was
// writing in a card that somebody else decided finds the focus on what became of it.
(() => {
  let kept = null;

  document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target } = event.detail;
    if (target.classList.contains("decided")) event.detail.shouldSwap = false;
    else if (target.contains(document.activeElement)) kept = target.id;
  });

  document.body.addEventListener("htmx:oobAfterSwap", () => {
    if (kept) document.getElementById(kept)?.focus();
    kept = null;
  });
})();
