// What was typed outlives a session that ended: kept in this tab alone, put back for the same
// person on the same page after the sign-in. Secrets and files are never kept.
(() => {
  const KEPT = "drafts";
  const SECRET = "[type=password], [type=file], [type=hidden], [type=search], [data-secret], [autocomplete=off]";
  const me = document.body.dataset.person;

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
    if (typed.length === 0) return sessionStorage.removeItem(KEPT);
    const draft = { person: me, path: location.pathname, typed };
    return sessionStorage.setItem(KEPT, JSON.stringify(draft));
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
  sessionStorage.removeItem(KEPT);
  if (draft?.ended && draft.person === me && draft.path === location.pathname && putBack(draft.typed)) {
    document.getElementById("messages").append(document.getElementById("drafts-back").content.cloneNode(true));
  }
  addEventListener("pagehide", keep);
})();
