// On a short screen the list of places scrolls, and starts where the current one is in view.
(() => {
  const places = document.querySelector("nav.tabs");
  const current = places?.querySelector("[aria-current]");
  if (!current) return;
  // By itself: scrollIntoView would move the page as well.
  const below = current.getBoundingClientRect().bottom - places.getBoundingClientRect().bottom;
  // So that the next place shows that there is more.
  if (below > 0) places.scrollTop += below + current.offsetHeight;
})();
