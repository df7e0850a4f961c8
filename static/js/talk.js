// Comments on a held call: the box is emptied once its words were taken, unless others stand there
// by then, and what was said never becomes less.
(() => {
  document.body.addEventListener("htmx:afterRequest", ({ detail }) => {
    const form = detail.elt.closest("[data-say]");
    if (!form || !detail.successful || form.querySelector("[role=alert]")) return;
    const { text } = form.elements;
    const taken = detail.requestConfig.formData.get("text").replaceAll("\r\n", "\n");
    if (text.value === taken) text.value = "";
  });

  // Comments are only added: a picture with fewer was drawn before what is shown.
  document.body.addEventListener("htmx:oobBeforeSwap", ({ target, detail }) => {
    if (!target.matches(".said")) return;
    if (detail.fragment.querySelectorAll("li").length < target.children.length) detail.shouldSwap = false;
  });
})();
