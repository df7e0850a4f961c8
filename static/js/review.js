// Counts what is chosen to be published, and chooses all without warnings, or none.
(() => {
  const form = document.querySelector("[data-reviewed]");
  const picks = form?.querySelector("[data-picks]");
  if (!picks) return;
  const count = form.querySelector("[data-chosen]");
  const boxes = [...form.querySelectorAll("li.review input[type=checkbox]")];

  function tell() {
    count.textContent = boxes.filter((box) => box.checked).length;
  }

  picks.addEventListener("click", ({ target }) => {
    const pressed = target.closest("[data-pick]");
    if (!pressed) return;
    for (const box of boxes) box.checked = pressed.dataset.pick === "calm" && "calm" in box.dataset;
    tell();
  });
  form.addEventListener("change", tell);
  // A browser that comes back to the page has chosen again what was chosen.
  addEventListener("pageshow", tell);
  picks.hidden = boxes.length < 2;
  count.parentElement.hidden = false;
  tell();
})();
