// A pressed button that came to nothing says so: htmx alone would leave the page as it was.
(() => {
  const words = document.getElementById("request-failed");
  const place = document.getElementById("messages");

  function tell(event) {
    // What the page reads by itself comes again with the next ring.
    if (event.detail.requestConfig.verb === "get") return;
    // A card asks what became of it (lost.js).
    const { elt, xhr } = event.detail;
    const isLost = xhr.status === 0 || xhr.status >= 500;
    if (isLost && elt.closest("[data-became] :is(.decision, .votes)")) return;
    place.replaceChildren(words.content.cloneNode(true));
    place.scrollIntoView({ block: "nearest" });
  }

  // The server says itself what is known.
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.xhr.status !== 503 || !detail.xhr.getResponseHeader("HX-Retarget")) return;
    detail.shouldSwap = true;
    detail.isError = false;
    place.scrollIntoView({ block: "nearest" });
  });

  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.body.addEventListener(name, tell);
  }
})();
