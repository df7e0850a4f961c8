// What was pressed or typed on a card is not lost: a press whose answer did not come asks the record
// what became of it, and words that were not sent outlive the form in which they stood.
(() => {
  const FIRST_AGAIN = 1000;
  const LONGEST_AGAIN = 15000;
  const ANSWER_MS = 30000;
  const words = document.getElementById("answer-lost");
  const place = document.getElementById("messages");
  // By the card's id: so long until it is asked again.
  const open = new Map();
  const asking = new Set();
  const kept = new Map();

  const isLost = (status) => status === 0 || status >= 500;

  async function read(address) {
    const given = { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(ANSWER_MS) };
    const answer = await fetch(address, given).catch(() => null);
    if (!answer || isLost(answer.status)) return null;
    // Signed out, or no longer allowed: a reload says so.
    if (!answer.ok || answer.redirected) location.reload();
    return answer.text();
  }

  async function ask(id) {
    if (!open.has(id) || asking.has(id)) return;
    asking.add(id);
    const picture = await read(document.getElementById(id).dataset.became);
    asking.delete(id);
    if (picture !== null) return answered(id, picture);
    const again = open.get(id);
    open.set(id, Math.min(again * 2, LONGEST_AGAIN));
    setTimeout(ask, again, id);
  }

  function answered(id, picture) {
    const card = document.getElementById(id);
    const had = card.contains(document.activeElement);
    open.delete(id);
    place.replaceChildren();
    keep(card);
    window.htmx.swap(card, picture, { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 0 });
    putAllBack();
    if (had) document.getElementById(id).focus();
  }

  function press(id) {
    const card = document.getElementById(id);
    const said = card.querySelector("[data-step-up-said]");
    if (said) said.textContent = "";
    card.querySelector("[data-lost]").replaceChildren(words.content.cloneNode(true));
    open.set(id, FIRST_AGAIN);
    ask(id);
  }

  document.body.addEventListener("htmx:afterRequest", ({ detail }) => {
    const card = detail.elt.closest("[data-card]");
    const votes = detail.requestConfig.verb === "post" && detail.elt.closest(".decision, .votes");
    if (card && votes && isLost(detail.xhr.status)) press(card.id);
  });

  // The connection is back.
  document.body.addEventListener("live:queue", () => open.forEach((_again, id) => ask(id)));

  function isTyped(field) {
    return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value.trim() && field.value !== field.defaultValue;
  }

  // Before a card gives way to another picture of it, unless that answers what was typed in it.
  function keep(card) {
    const typed = [...card.querySelectorAll("textarea, [name=because]")].filter(isTyped);
    if (typed.length) kept.set(card.id, typed);
  }

  function counterpart(card, field) {
    if (field.id) return card.querySelector(`textarea[id="${field.id}"]`);
    return card.querySelector(`[name="${field.name}"][value="${field.value}"]`);
  }

  function putBack(card, typed) {
    const unsent = [];
    for (const field of typed) {
      // What stands in the record was sent.
      if (card.matches("[data-mine]") && field.closest(".decision")) continue;
      const there = counterpart(card, field);
      if (!there && field.type !== "checkbox") unsent.push(field.value);
      if (!there) continue;
      if (field.type === "checkbox") there.checked = field.checked;
      else there.value = field.value;
      const fold = there.closest("details");
      if (fold) fold.open = true;
    }
    if (unsent.length) tell(card, unsent.join("\n"));
  }

  function tell(card, text) {
    const note = document.getElementById("unsent").content.cloneNode(true);
    note.querySelector("q").textContent = text;
    card.append(note);
  }

  function putAllBack() {
    for (const [id, typed] of kept) {
      const card = document.getElementById(id);
      if (card && !card.contains(typed[0])) putBack(card, typed);
    }
    kept.clear();
  }

  document.body.addEventListener("htmx:oobBeforeSwap", ({ target }) => target.matches("[data-card]") && keep(target));
  document.body.addEventListener("htmx:oobAfterSwap", putAllBack);
})();
