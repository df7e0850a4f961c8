// The list of pending calls and the card beside it, by keyboard too. Both keep still: what was
// decided stays where it is, also when a slower picture of it arrives, and who was writing in a card
// that somebody else decided finds the focus on what became of it.
(() => {
  let kept = null;

  document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target } = event.detail;
    if (target.closest(".decided")) event.detail.shouldSwap = false;
    else if (target.contains(document.activeElement)) kept = target.id;
  });

  document.body.addEventListener("htmx:oobAfterSwap", () => {
    const place = kept && document.getElementById(kept);
    (place?.querySelector("[data-row]") ?? place)?.focus();
    kept = null;
  });

  // What is shown now is news no longer: the page asks again how many it does not show.
  document.getElementById("queue")?.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id !== "queue") return;
    document.body.dispatchEvent(new CustomEvent("live:queue"));
    if (!card() && !isNarrow()) rows()[0].click();
  });

  // Whatever comes first, the answer to a press or the news of it: who pressed stays at the card.
  let pressed = null;
  let unseen = null;

  document.body.addEventListener("htmx:beforeRequest", ({ target }) => {
    pressed = target.closest("[data-card]")?.id ?? pressed;
    unseen = target.closest("[data-card]")?.id ?? unseen;
  });

  document.body.addEventListener("htmx:afterSettle", () => {
    const lost = document.activeElement === document.body;
    if (pressed && lost) document.getElementById(pressed)?.focus();
    showOutcome(document.activeElement);
  });

  // What became of it stands at the top of a card, and focus shows the middle of a long one.
  function showOutcome(shown) {
    if (shown.id !== unseen || !shown.matches(".decided")) return;
    unseen = null;
    if (shown.getBoundingClientRect().top < 0) shown.scrollIntoView();
  }

  document.addEventListener("focusin", ({ target }) => {
    if (pressed && target.closest("[data-card]")?.id !== pressed) pressed = null;
  });

  // Enter in what belongs to one of the two buttons presses that one, and never the other.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches(".decision input")) return;
    const button = event.target.name === "because" ? "[data-deny]" : "[data-approve]";
    event.preventDefault();
    event.target.form.querySelector(button).click();
  });

  const detail = document.getElementById("detail");
  const news = document.querySelector("[data-news]");
  const list = document.querySelector(".listing");
  const card = () => detail.querySelector("[data-card]");
  const rows = () => [...list.querySelectorAll("[data-row]")];
  const rowOf = (shown) => rows().find((row) => shown?.id === `card-${row.dataset.row}`);

  // One column has room for one of the two: there a line leads to the page of its card.
  const isNarrow = () => getComputedStyle(detail).display === "none";
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-row]") && (isNarrow() || event.ctrlKey || event.metaKey || event.shiftKey)) event.stopPropagation();
  }, { capture: true });

  function mark() {
    const current = rowOf(card());
    for (const row of rows()) row.toggleAttribute("aria-current", row === current);
    current?.setAttribute("aria-current", "true");
  }

  // What was asked of the card that goes would find no place: it is asked again for the one that comes.
  // An abort begins the request that waited behind it, which asks of the card that goes too.
  const abort = ({ target }) => {
    if (target === detail || target.matches("[data-card]")) window.htmx.trigger(news, "htmx:abort");
  };
  detail.addEventListener("htmx:beforeSwap", abort);
  detail.addEventListener("htmx:afterSwap", abort);
  detail.addEventListener("htmx:afterSwap", ({ target }) => {
    mark();
    if (target.matches("[data-card]")) document.body.dispatchEvent(new CustomEvent("live:queue"));
    if (target !== detail) return;
    document.body.dispatchEvent(new CustomEvent("live:queue"));
    document.dispatchEvent(new CustomEvent("title:plain", { detail: card().dataset.title }));
    if (going) card().focus();
    going = false;
  });
  document.body.addEventListener("htmx:oobAfterSwap", mark);

  // Enter on a line goes on to its card.
  let going = false;
  list.addEventListener("keydown", ({ key, target }) => {
    going = key === "Enter" && target.matches("[data-row]");
  });

  // The first step goes to the line of the card that is shown.
  function step(by) {
    const all = rows();
    const current = rowOf(card());
    const isThere = document.activeElement.closest("[data-row], [data-card]");
    const next = all[all.indexOf(current) + (current && !isThere ? 0 : by)] ?? (current ? null : all[0]);
    if (!next) return;
    next.focus();
    if (next !== current) next.click();
  }

  function deny(shown) {
    const panel = shown.querySelector(".refusal");
    if (!panel) return;
    panel.open = true;
    panel.querySelector("[name=because]").focus();
  }

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    o: (shown) => shown.querySelector("[data-own]")?.click(),
    a: (shown) => shown.querySelector("[data-approve]:enabled, [data-suspended]")?.focus(),
    d: deny,
  };

  document.addEventListener("shortcut:key", (event) => {
    const act = KEYS[event.detail];
    if (!act) return;
    const shown = card();
    if (!shown && act.length) return;
    event.preventDefault();
    act(shown);
  });

  // Escape leads out of what one is writing or about to press, back to the card, and from it to its
  // line.
  document.addEventListener("keydown", (event) => {
    const from = event.key === "Escape" && !document.querySelector("dialog[open]") && document.activeElement.closest("[data-card]");
    if (!from) return;
    const panel = document.activeElement.closest("[data-bar]")?.querySelector(".refusal");
    if (panel) panel.open = false;
    if (document.activeElement === from) rowOf(from)?.focus();
    else from.focus();
  });
})();
