// How many approvals are pending, in the title and on the icon: a tab in the background says so too,
// and so does the icon of the installed application.
(() => {
  let plain = document.title;
  const icon = document.querySelector("link[rel=icon]");
  const uncounted = icon.getAttribute("href");
  // From 1 on; the last stands for all above.
  const counted = icon.dataset.counted.split(",");
  let badge = -1;

  function show() {
    // The number alone, without what is read aloud beside it.
    const count = document.getElementById("queue-count")?.firstChild?.nodeValue?.trim();
    const title = count ? `(${count}) ${plain}` : plain;
    if (document.title !== title) document.title = title;
    const href = count ? counted[Math.min(parseInt(count, 10), counted.length) - 1] : uncounted;
    if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
    mark(count ? parseInt(count, 10) : 0);
  }

  // Some browsers have no badge, and some only for what is installed.
  function mark(pending) {
    if (pending === badge) return;
    badge = pending;
    document.dispatchEvent(new CustomEvent("queue:count", { detail: pending }));
    (pending ? navigator.setAppBadge?.(pending) : navigator.clearAppBadge?.())?.catch(() => {});
  }

  show();
  const navigation = document.querySelector("nav.tabs");
  if (navigation) new MutationObserver(show).observe(navigation, { subtree: true, childList: true });
  // The queue shows another card.
  document.addEventListener("title:plain", ({ detail }) => {
    plain = detail;
    show();
  });
})();
