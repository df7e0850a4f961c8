// Runs in every page of the browser tests before the page's own scripts. It says on the console
// (debug) which controls the page has, and which of them somebody used: by events that only a real
// mouse or keyboard makes (isTrusted). tests/browser/controls.py listens.
(() => {
  if (window !== top || !location.protocol.startsWith("http")) return;

  const CONTROLS =
    "a[href], button, input, select, textarea, summary, form, kbd, [draggable=true], " +
    "[role=button], [role=tab], [role=menuitem]";
  const NOT_ONES_TO_USE = "input[type=hidden], [aria-hidden=true], [disabled]";
  // Rows differ in these only.
  const ROWS = ".visually-hidden, .mono, .name, .count, .muted, svg";
  const ALIKE = { until: "since", range: "since", to: "from", version: "tool" };
  const KEYS = { Control: "Ctrl", Meta: "Ctrl", Escape: "Esc" };

  const part = (e) => {
    if (e.matches("[data-without-script]")) return "without JavaScript";
    if (e.matches("[data-copy]")) return "many pages";
    if (e.closest("header.rail, dialog, .skip, .breadcrumbs, #frozen, .plain-page > .wordmark")) return "frame";
    if (e.closest(".schema-form")) return "form of a schema";
    if (e.closest("[data-card]")) return "card";
    return location.pathname;
  };

  function words(e) {
    const copy = e.cloneNode(true);
    for (const row of copy.querySelectorAll(ROWS)) row.remove();
    return copy.textContent.trim() || e.title || e.getAttribute("aria-label") || "";
  }

  // What a link adds to the address, of all that it has there: the rest was there before.
  function step(there) {
    const here = new URLSearchParams(location.search);
    const added = [...there.searchParams.keys()].filter((name) => there.searchParams.get(name) !== here.get(name));
    if (added.length) return [...new Set(added.map((name) => ALIKE[name] ?? name))].sort().join(" ");
    if (there.pathname !== location.pathname) return "";
    return [...here.keys()].some((name) => !there.searchParams.has(name)) ? "less" : null;
  }

  // None, for what is no step anywhere, and for what stands in a place until it is read.
  function link(e) {
    const there = new URL(e.getAttribute("href"), location.href);
    if (there.origin !== location.origin) return there.protocol.startsWith("http") ? ["", "to elsewhere"] : null;
    if (e.closest(".places")) return ["", "what was found"];
    if (there.hash && there.pathname + there.search === location.pathname + location.search) return ["", `to ${there.hash}`];
    if (e.closest("[hx-get]")?.getAttribute("hx-get") === there.pathname) return null;
    const name = part(e) === "frame" ? "" : step(there);
    return name === null ? null : [there.pathname, name];
  }

  const action = (form) => new URL(form?.getAttribute("action") || location.href, location.href).pathname;

  function button(e) {
    // [data-copy], [data-open] and the like: their words change when they are pressed.
    const to = e.getAttribute("hx-post") ?? e.getAttribute("formaction");
    if (e.type !== "submit" || !e.form) return ["", Object.values(e.dataset)[0] || words(e)];
    const choice = /^[a-z-]{2,12}(?= |$)/.exec(e.value);
    return [to ? new URL(to, location.href).pathname : action(e.form), [e.name, choice?.[0]].filter(Boolean).join(" ")];
  }

  function key(e) {
    return e.closest("[data-goto]") ? [...e.parentElement.querySelectorAll("kbd")].map((k) => k.textContent).join(" ") : e.textContent;
  }

  // [kind, where it leads, name]
  function described(e) {
    if (e.matches("[data-without-script]")) return ["button", "", button(e)[1]];
    if (e.matches("a")) return link(e) && ["link", ...link(e)];
    if (e.matches("button, [role=button], [role=tab], [role=menuitem]")) return ["button", ...button(e)];
    if (e.matches("summary")) return ["fold", "", e.closest(".facet") ? "a facet" : e.closest(".of-call") ? "a call" : words(e)];
    if (e.matches("form")) return ["form", action(e), e.method];
    if (e.matches("kbd")) return ["key", "", key(e)];
    if (e.matches("input, select, textarea")) {
      const kind = e.localName === "input" ? e.type : e.localName;
      // Which fields the form of a schema has is the schema's choice.
      if (e.closest(".schema-form")) return [kind, "", /:[a-z]+$/.exec(e.name)?.[0] ?? "field"];
      const choice = e.type === "radio" ? ` ${e.value}` : "";
      return [kind, e.form ? action(e.form) : "", (e.name || e.id || Object.keys(e.dataset).join(" ")) + choice];
    }
    return ["drag", "", e.localName];
  }

  const said = new Set();

  function say(what, e, by = "") {
    if (e.matches(NOT_ONES_TO_USE)) return;
    const found = described(e);
    if (!found) return;
    const [kind, to, name] = found;
    if (!to && !name) return;
    const line = JSON.stringify([what, by, kind === "key" ? "frame" : part(e), kind, to, name.replaceAll(/\s+/g, " ")]);
    if (what === "seen" && said.has(line)) return;
    said.add(line);
    console.debug(`@controls ${line}`);
  }

  const isHidden = (e) => e.closest("[hidden]") && !e.matches("[data-without-script]");

  function look() {
    for (const e of document.querySelectorAll(CONTROLS)) if (!isHidden(e)) say("seen", e);
  }

  let later = 0;
  const lookSoon = () => { later ||= setTimeout(() => { later = 0; look(); }, 40); };
  document.addEventListener("DOMContentLoaded", () => {
    look();
    new MutationObserver(lookSoon).observe(document, {
      subtree: true, childList: true, attributeFilter: ["hidden", "href", "draggable"],
    });
  });

  function used(e, by) {
    if (!e || e.getAttribute("aria-disabled") === "true") return;
    // What came just now and is pressed at once would otherwise be used and never seen.
    say("seen", e);
    say("used", e, by);
    if (e.matches("button") && e.type === "submit" && e.form) say("used", e.form, by);
  }

  const on = (type, act) => addEventListener(type, (event) => event.isTrusted && act(event), true);

  on("click", (event) => {
    const e = event.target.closest?.("a[href], button, summary, [role], input[type=checkbox], input[type=radio], input[type=file], input[type=submit]");
    used(e, event.pointerType ? "" : "key");
  });
  let typedIn = null;
  on("input", ({ target }) => used(target, typedIn === target ? "key" : ""));
  on("change", ({ target }) => used(target, typedIn === target ? "key" : ""));
  // Not by a button: what a script presses submits its form all the same.
  on("submit", ({ target, submitter }) => submitter || used(target, "key"));
  on("dragend", ({ target }) => used(target.closest?.("[draggable=true]"), ""));

  let before = "";
  on("keydown", ({ key: pressed, ctrlKey, metaKey, target }) => {
    typedIn = target;
    const name = KEYS[pressed] ?? (ctrlKey || metaKey ? pressed.toUpperCase() : pressed);
    const all = [...document.querySelectorAll("kbd")];
    for (const kbd of all) if ([name, `${before} ${name}`].includes(key(kbd))) say("used", kbd, "key");
    before = name;
  });
})();
