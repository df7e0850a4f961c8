// What was typed outlives a session that ended, and a look at another page: kept in this tab alone,
// put back for the same person on the same page after the sign-in, or when they go back to it.
// Secrets and files are never kept.
(() => {
  const KEPT = "drafts";
  const SECRET = "[type=password], [type=file], [type=hidden], [type=search], [data-secret], [autocomplete=off]";
  const me = document.body.dataset.person;
  let sent = false;

  function fields() {
    const all = document.querySelectorAll("main form[method=post] :is(input, select, textarea)");
    return [...all].filter((field) => !field.matches(SECRET));
  }

  function isChoice(field) {
    return field.type === "checkbox" || field.type === "radio";
  }

  // A field is known by what does not change when the page is drawn again.
  function name(field) {
    const which = isChoice(field) ? field.value : "";
    return [field.id || field.form.getAttribute("action"), field.name, which].join(" ");
  }

  function changed(field) {
    if (isChoice(field)) return field.checked !== field.defaultChecked;
    if (field.options) return [...field.options].some((one) => one.selected !== one.defaultSelected);
    return field.value !== field.defaultValue;
  }

  function keep() {
    const typed = fields().filter(changed).map((field) => [name(field), isChoice(field) ? field.checked : field.value]);
    if (typed.length === 0) return;
    const draft = { person: me, path: location.pathname, typed, sent };
    sessionStorage.setItem(KEPT, JSON.stringify(draft));
  }

  function kept() {
    try {
      return JSON.parse(sessionStorage.getItem(KEPT));
    } catch {
      return null;
    }
  }

  function putBack(typed) {
    const values = new Map(typed);
    let found = 0;
    for (const field of fields()) {
      if (!values.has(name(field))) continue;
      if (isChoice(field)) field.checked = values.get(name(field));
      else field.value = values.get(name(field));
      const fold = field.closest("details");
      if (fold) fold.open = true;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      found += 1;
    }
    return found;
  }

  const draft = kept();
  if (!me) {
    // The sign-in page: what is kept waits for whoever signs in.
    if (!draft) return;
    sessionStorage.setItem(KEPT, JSON.stringify({ ...draft, ended: true }));
    for (const note of document.querySelectorAll("[data-drafts]")) note.hidden = false;
    return;
  }
  const isHere = draft?.person === me && draft.path === location.pathname;
  // Of another page it waits for the way back; after a sign-in, or for somebody else, no longer.
  if (isHere || draft?.ended || draft?.person !== me) sessionStorage.removeItem(KEPT);
  const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (isHere && (draft.ended || (isBack && !draft.sent)) && putBack(draft.typed) && draft.ended) {
    document.getElementById("messages").append(document.getElementById("drafts-back").content.cloneNode(true));
  }
  // A form that a script sends leaves the page where it is.
  addEventListener("submit", (event) => {
    sent = !event.defaultPrevented;
  });
  addEventListener("pagehide", keep);
})();
