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
  const REFUSED = [4403, 4404];
  let wait = FIRST_WAIT;
  // A form that ends this session and begins another is answered with that one's cookie: a reload
  // meanwhile would give the answer up, and the person with it.
  const TO_BE_ANSWERED = 5000;
  let heard = false;
  let leaving = false;
  const due = new Map();

  function show(state) {
    if (!sign) return;
    sign.dataset.live = state;
    sign.textContent = state === "on" ? sign.dataset.on : sign.dataset.off;
  }

  function ring(topic) {
    if (due.has(topic)) return;
    due.set(topic, setTimeout(() => {
      due.delete(topic);
      document.body.dispatchEvent(new CustomEvent(`live:${topic}`));
    }, QUIET));
  }

  // "Just now" has become "12 s ago" here by itself: that alone is no new picture.
  function keepTimes(old, part) {
    const shown = old.querySelectorAll("time");
    part.querySelectorAll("time").forEach((time, n) => {
      if (shown[n]?.dateTime === time.dateTime) time.textContent = shown[n].textContent;
    });
  }

  function draw(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").body;
    for (const part of [...fresh.children]) {
      const old = part.id && document.getElementById(part.id);
      if (!old) continue;
      keepTimes(old, part);
      if (old.isEqualNode(part)) continue;
      const node = document.adoptNode(part);
      old.replaceWith(node);
      window.htmx?.process(node);
    }
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
      // Spread out, so that a restarted server is not met by every tab at once.
      setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, LONGEST_WAIT);
    });
  }

  addEventListener("beforeunload", () => { leaving = true; });
  if (address) connect();
})();
