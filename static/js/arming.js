// Approve can be pressed once every argument was in view, from its first line to its last: what
// nobody looked at is not approved by a slip; and not while an emergency stop covers the call. The
// server does not rely on it.
(() => {
  // By card: the marks not seen yet, and what observes them.
  const waiting = new Map();
  // What covers the end of a window: on a phone the tabs, or the bar with the buttons.
  const tabs = document.querySelector(".tabs");

  const fixedHeight = (element) => (element && /fixed|sticky/.test(getComputedStyle(element).position) ? element.offsetHeight : 0);

  function observer(covered) {
    return new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) seen(target);
      }
    }, { rootMargin: `0px 0px -${covered}px` });
  }

  // Anew when the bar grows, as it does when somebody writes in it: nobody sees what stands behind.
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const state = waiting.get(target.closest("[data-card]"));
      if (state) observe(state, target);
    }
  });

  function observe(state, bar) {
    state.observer?.disconnect();
    state.observer = observer(Math.max(fixedHeight(bar), fixedHeight(tabs)));
    for (const mark of state.left) state.observer.observe(mark);
  }

  function seen(mark) {
    const card = mark.closest("[data-card]");
    const state = waiting.get(card);
    state?.observer.unobserve(mark);
    state?.left.delete(mark);
    if (state?.left.size === 0) arm(card);
  }

  // A tall argument is seen when its end was: a line without height stands there.
  function marks(card) {
    return [...card.querySelectorAll(".arguments > div, .differing tbody > tr")].flatMap((row) => {
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
    waiting.set(card, { left });
    resized.observe(card.querySelector("[data-bar]"));
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
    const [first] = waiting.get(button.closest("[data-card]"))?.left ?? [];
    first?.scrollIntoView({ block: "center" });
  }, { capture: true });

  document.body.addEventListener("htmx:load", watchAll);
  document.body.addEventListener("htmx:oobAfterSwap", suspend);
  watchAll();
})();
