// Offers the browser's time zone where the person's is another.
(() => {
  const button = document.querySelector("[data-zone]");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!button || !zone || zone === button.dataset.zone) return;
  button.value = zone;
  button.querySelector("span").textContent = zone;
  button.hidden = false;
})();
