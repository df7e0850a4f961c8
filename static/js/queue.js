// The queue by keyboard, and cards that keep still: one that was decided stays as it is, also when
// a slower picture of it arrives, and who was writing in a card that somebody else decided finds
// the focus on what became of it.
(() => {
  let kept = null;

  document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target } = event.detail;
    if (target.closest(".decided")) event.detail.shouldSwap = false;
    else if (target.contains(document.activeElement)) kept = target.id;
  });

  document.body.addEventListener("htmx:oobAfterSwap", () => {
    if (kept) document.getElementById(kept)?.focus();
    kept = null;
  });

  // What is shown now is news no longer: the page asks again how many it does not show.
  document.getElementById("queue")?.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "queue") document.body.dispatchEvent(new CustomEvent("live:queue"));
  });

  // Whatever comes first, the answer to a press or the news of it: who pressed stays at the card.
  let pressed = null;

  document.body.addEventListener("htmx:beforeRequest", ({ target }) => {
    pressed = target.closest("[data-card]")?.id ?? pressed;
  });

  document.body.addEventListener("htmx:afterSettle", () => {
    const lost = document.activeElement === document.body;
    if (pressed && lost) document.getElementById(pressed)?.focus();
  });

  document.addEventListener("focusin", ({ target }) => {
    if (pressed && target.closest("[data-card]")?.id !== pressed) pressed = null;
  });

  // One reason, whether it becomes a yes or a no: it goes where the form is that is to be sent.
  document.addEventListener("toggle", ({ target: panel }) => {
    if (!panel.matches(".refusal")) return;
    const reason = panel.closest(".decision").querySelector(".approval [name=reason]");
    const details = panel.querySelector("[name=reason]");
    const [from, to] = panel.open ? [reason, details] : [details, reason];
    if (!from.value || to.value) return;
    to.value = from.value;
    from.value = "";
  }, true);

  function cards() {
    return [...document.querySelectorAll("[data-card]")];
  }

  function current() {
    return document.activeElement.closest("[data-card]");
  }

  // The first step goes to the first card that is in view.
  function step(by) {
    const all = cards();
    const card = current();
    const first = all.find((one) => one.getBoundingClientRect().bottom > 80) ?? all[0];
    const next = card ? all[all.indexOf(card) + by] : first;
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "start", behavior: "instant" });
  }

  function refuse(card) {
    const panel = card.querySelector(".refusal");
    if (!panel) return;
    panel.open = true;
    panel.querySelector("[name=because]").focus();
  }

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    o: (card) => card.querySelector("[data-own]")?.click(),
    a: (card) => card.querySelector("[data-approve]:enabled, [data-suspended]")?.focus(),
    r: refuse,
  };

  document.addEventListener("shortcut:key", (event) => {
    const act = KEYS[event.detail];
    if (!act) return;
    const card = current() ?? (cards().length === 1 ? cards()[0] : null);
    if (!card && act.length) return;
    event.preventDefault();
    act(card);
  });

  // Escape leads out of what one is writing or about to press, back to the card.
  document.addEventListener("keydown", (event) => {
    const card = event.key === "Escape" && !document.querySelector("dialog[open]") && current();
    if (!card || document.activeElement === card) return;
    const panel = document.activeElement.closest(".refusal");
    if (panel) panel.open = false;
    card.focus();
  });
})();
