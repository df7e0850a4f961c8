// Approve can be pressed once every argument was in view, from its first line to its last: what
// nobody looked at is not approved by a slip; and not while an emergency stop covers the call. The
// server does not rely on it.
(() => {
  const waiting = new Map();
  // On a phone they cover the end of the page: nobody sees what stands behind them.
  const tabs = document.querySelector(".tabs");
  const covered = tabs && getComputedStyle(tabs).position === "fixed" ? tabs.offsetHeight : 0;

  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) seen(target);
    }
  }, { rootMargin: `0px 0px -${covered}px` });

  function seen(mark) {
    observer.unobserve(mark);
    const card = mark.closest("[data-card]");
    const left = waiting.get(card);
    left?.delete(mark);
    if (left?.size === 0) arm(card);
  }

  // A tall argument is seen when its end was: a line without height stands there.
  function marks(card) {
    return [...card.querySelectorAll(".arguments > div")].flatMap((row) => {
      const end = document.createElement("span");
      end.className = "end";
      row.lastElementChild.append(end);
      return [row.firstElementChild, end];
    });
  }

  function tell(card, which) {
    const tip = card.querySelector("[data-tip]");
    if (tip) tip.textContent = tip.dataset[which];
  }

  function arm(card) {
    waiting.delete(card);
    card.querySelector("[data-approve]")?.removeAttribute("aria-disabled");
    tell(card, "armed");
  }

  function watch(card) {
    const button = card.querySelector("[data-approve]");
    if (!button || waiting.has(card) || button.dataset.approve === "watched") return;
    button.dataset.approve = "watched";
    const left = new Set(marks(card));
    if (left.size === 0) return arm(card);
    button.setAttribute("aria-disabled", "true");
    tell(card, "unarmed");
    waiting.set(card, left);
    for (const mark of left) observer.observe(mark);
  }

  function watchAll() {
    for (const card of waiting.keys()) if (!card.isConnected) waiting.delete(card);
    for (const card of document.querySelectorAll("[data-card]")) watch(card);
  }

  // An emergency stop begins and ends while the page is open, and nothing is approved meanwhile.
  function suspend() {
    for (const button of document.querySelectorAll("[data-approve]")) {
      button.disabled = Boolean(button.closest("[data-card]").querySelector("[data-suspended]"));
    }
  }

  // Before htmx and the form hear of it: a press too early leads to what was not seen yet.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-approve][aria-disabled]");
    if (!button) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const [first] = waiting.get(button.closest("[data-card]")) ?? [];
    first?.scrollIntoView({ block: "center" });
  }, { capture: true });

  document.body.addEventListener("htmx:load", watchAll);
  document.body.addEventListener("htmx:oobAfterSwap", suspend);
  watchAll();
})();
