// The switch is a form that works without this file; here it only saves the round trip.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-themes]");
  if (!form || !event.submitter) return;
  event.preventDefault();

  const theme = event.submitter.value;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax${secure}`;
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-themes] button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
});
