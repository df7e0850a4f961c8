// One WebSocket a tab. The server rings ({"changed": "queue"}) and the page re-reads its rows, or
// it sends the new picture itself ({"html": "…"}) of elements that the page knows by their ids.
// Lost messages only delay: every connection begins with a ring or a picture.
(() => {
  const address = document.body.dataset.live;
  const sign = document.querySelector("[data-connection]");
  const FIRST_WAIT = 500;
  const LONGEST_WAIT = 15000;
  // Many rings within this time are answered by one reading.
  const QUIET = 400;
  // A reading that failed is made again: the next ring may be long in coming.
  const FIRST_AGAIN = 1000;
  const LONGEST_AGAIN = 60000;
  const REFUSED = [4403, 4404];
  let wait = FIRST_WAIT;
  let again = FIRST_AGAIN;
  // A form that ends this session and begins another is answered with that one's cookie: a reload
  // meanwhile would give the answer up, and the person with it.
  const TO_BE_ANSWERED = 5000;
  let heard = false;
  let leaving = false;
  const due = new Map();
  const rangAt = new Map();
  const askedAt = new WeakMap();
  const shownBefore = new WeakMap();

  function show(state) {
    if (!sign) return;
    sign.dataset.live = state;
    sign.textContent = state === "on" ? sign.dataset.on : sign.dataset.off;
  }

  // Spread out, so that a restarted server is not met by every tab at once.
  function spread(time) {
    return time * (0.75 + Math.random() / 2);
  }

  function ring(topic) {
    if (due.has(topic)) return;
    due.set(topic, setTimeout(() => {
      due.delete(topic);
      rangAt.set(topic, performance.now());
      document.body.dispatchEvent(new CustomEvent(`live:${topic}`));
    }, QUIET));
  }

  // What a reader takes for `one` in the new picture: of those with the same words, as far down.
  function counterpart(one, old, part) {
    const words = (element) => (element.querySelector("summary") ?? element).textContent;
    const alike = (root) => [...root.querySelectorAll(one.localName)].filter((other) => words(other) === words(one));
    return alike(part)[alike(old).indexOf(one)];
  }

  // What somebody unfolded stays so, and what they folded.
  function foldAlike(old, part) {
    for (const shown of old.querySelectorAll("details")) {
      const fold = counterpart(shown, old, part);
      if (fold) fold.open = shown.open;
    }
  }

  // "Just now" has become "12 s ago" here by itself, and a form's token differs each time: that
  // alone is no new picture.
  function isNews(old, part) {
    foldAlike(old, part);
    const shown = old.querySelectorAll("time, [name=csrfmiddlewaretoken]");
    part.querySelectorAll("time, [name=csrfmiddlewaretoken]").forEach((one, n) => {
      if (one.localName === "input") one.setAttribute("value", shown[n]?.value ?? one.value);
      else if (shown[n]?.dateTime === one.dateTime) one.textContent = shown[n].textContent;
    });
    return !old.isEqualNode(part);
  }

  function draw(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").body;
    for (const part of [...fresh.children]) {
      const old = part.id && document.getElementById(part.id);
      // Lines that somebody looked for are not in what is sent to everybody.
      if (!old || old.hasAttribute("data-kept") || !isNews(old, part)) continue;
      replace(old, document.adoptNode(part));
    }
  }

  // With the keyboard's place in it.
  function replace(old, node) {
    const focused = old.contains(document.activeElement) && counterpart(document.activeElement, old, node);
    old.replaceWith(node);
    window.htmx?.process(node);
    if (focused) focused.focus({ preventScroll: true });
  }

  function connect() {
    const socket = new WebSocket(new URL(address, location.href.replace(/^http/, "ws")));
    socket.addEventListener("open", () => {
      wait = FIRST_WAIT;
      show("on");
    });
    socket.addEventListener("message", ({ data }) => {
      const message = JSON.parse(data);
      heard = true;
      if (message.changed) ring(message.changed);
      if (message.html) draw(message.html);
    });
    socket.addEventListener("close", ({ code }) => {
      show("off");
      // Signed out, or no longer allowed: a reload says so. Never for a socket that was refused
      // from the beginning, behind a proxy that drops cookies: it would reload for ever.
      if (REFUSED.includes(code)) return heard && setTimeout(() => location.reload(), leaving ? TO_BE_ANSWERED : 0);
      setTimeout(connect, spread(wait));
      wait = Math.min(wait * 2, LONGEST_WAIT);
    });
  }

  // What an answer brings, or puts in the place of what asked, hears only from now on: what rang
  // since it was asked for rings again.
  document.body.addEventListener("htmx:beforeSend", ({ detail }) => askedAt.set(detail.xhr, performance.now()));
  document.body.addEventListener("htmx:afterSettle", ({ target, detail }) => {
    for (const [topic, at] of rangAt) {
      const listens = `[hx-trigger*="live:${topic}"]`;
      if (at >= askedAt.get(detail.xhr) && (target.matches(listens) || target.querySelector(listens))) ring(topic);
    }
  });

  // The answer to the last letter typed may come after somebody unfolded what narrows.
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target) shownBefore.set(detail.xhr, detail.target.cloneNode(true));
  });
  document.body.addEventListener("htmx:afterSwap", ({ detail }) => {
    // A page that comes back from the browser's history is swapped without having been asked for.
    const before = shownBefore.get(detail.xhr);
    const part = before?.id && document.getElementById(before.id);
    if (part) foldAlike(before, part);
  });

  document.body.addEventListener("htmx:oobBeforeSwap", ({ target, detail }) => {
    const part = detail.fragment.firstElementChild;
    if (part?.id === target.id && !isNews(target, part)) detail.shouldSwap = false;
  });

  document.body.addEventListener("htmx:afterRequest", ({ detail }) => {
    const topic = /^live:(.+)/.exec(detail.requestConfig.triggeringEvent?.type)?.[1];
    const { status } = detail.xhr;
    if (!topic) return;
    if (status > 0 && status < 500) {
      // Answered; also what is refused, and stays so.
      again = FIRST_AGAIN;
    } else {
      setTimeout(ring, spread(again), topic);
      again = Math.min(again * 2, LONGEST_AGAIN);
    }
  });

  addEventListener("beforeunload", () => { leaving = true; });
  // Nor does a reading that began before, and that the ended session sends to sign in.
  document.body.addEventListener("htmx:beforeOnLoad", (event) => {
    if (!leaving || !event.detail.xhr.getResponseHeader("HX-Redirect")) return;
    event.preventDefault();
    setTimeout(() => location.reload(), TO_BE_ANSWERED);
  });
  // By then htmx has read the page: a ring before it would be heard by nobody.
  if (address) document.addEventListener("DOMContentLoaded", connect);
})();
