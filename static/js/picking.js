// Selecting pending calls to approve in one step: x toggles the line that one is at, Shift-X all from
// the last toggled one to it. What may be approved together, the page behind the button says.
(() => {
  const form = document.querySelector("[data-picked]");
  if (!form) return;
  const said = form.querySelector("[role=status]");
  const button = form.querySelector("button:not([type])");
  const clear = form.querySelector("[type=reset]");
  const most = Number(form.dataset.most);
  const boxes = () => [...document.querySelectorAll("[data-pick]")];
  let last = null;

  function words(n) {
    if (n > most) return said.dataset.tooMany;
    return n === 1 ? said.dataset.one : said.dataset.many.replace("{n}", n);
  }

  function tell() {
    const n = boxes().filter((box) => box.checked).length;
    form.hidden = n === 0;
    form.classList.toggle("is-any", n > 0);
    clear.hidden = n === 0;
    button.disabled = n < 2 || n > most;
    const text = n ? words(n) : "";
    if (said.textContent !== text) said.textContent = text;
  }

  function boxHere() {
    const line = document.activeElement.closest(".line-of") ?? document.querySelector(".line-of:has([data-row][aria-current])");
    return line?.querySelector("[data-pick]");
  }

  function toggle(box) {
    box.checked = !box.checked;
    last = box;
    tell();
  }

  function toggleAsFarAs(box) {
    const all = boxes();
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
    if (from < 0) return toggle(box);
    for (const one of all.slice(from, to + 1)) one.checked = last.checked;
    last = box;
    tell();
  }

  document.addEventListener("shortcut:key", (event) => {
    if (event.detail !== "x" && event.detail !== "X") return;
    const box = boxHere();
    if (!box) return;
    event.preventDefault();
    (event.detail === "x" ? toggle : toggleAsFarAs)(box);
  });

  document.addEventListener("change", ({ target }) => {
    if (!target.matches("[data-pick]")) return;
    last = target;
    tell();
  });
  form.addEventListener("reset", () => setTimeout(tell));
  // Lines come and change while the page is open; a browser that comes back to it checks them anew.
  document.body.addEventListener("htmx:oobAfterSwap", tell);
  document.body.addEventListener("htmx:afterSwap", tell);
  addEventListener("pageshow", tell);
  tell();
})();
