// Long lists of choices are searched: what has not all typed words is hidden, unless it is chosen.
// Without this script they are lists to scroll.
(() => {
  const LONG = 12;

  function prepare(list) {
    const boxes = [...list.querySelectorAll("input[type=checkbox]")];
    if (boxes.length <= LONG || list.querySelector("[type=search]")) return;
    const rows = boxes.map((box) => ({ box, ...rowOf(box.closest("label")) }));
    // Once, before anybody reads them: what is chosen comes first.
    for (const { box, row } of rows.toReversed()) if (box.checked) putFirst(row);
    (list.querySelector(":scope > .hint") ?? list.querySelector("legend")).after(...searchField(list, rows));
  }

  // Below the title of its group, if it is in one.
  function putFirst(row) {
    const first = [...row.parentElement.children].find((e) => e.matches("label, div") && e.querySelector("input"));
    row.parentElement.insertBefore(row, first);
  }

  // Django puts each label into an element of its own.
  function rowOf(label) {
    const isAlone = label.parentElement.children.length === 1;
    return { row: isAlone ? label.parentElement : label, text: label.textContent.toLocaleLowerCase() };
  }

  function searchField(list, rows) {
    const field = Object.assign(document.createElement("input"), {
      type: "search", autocomplete: "off", placeholder: list.dataset.search,
    });
    field.setAttribute("aria-label", `${list.dataset.search}: ${list.querySelector("legend").textContent}`);
    const count = Object.assign(document.createElement("p"), { className: "muted small" });
    count.setAttribute("role", "status");

    function narrow() {
      const typed = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
      const fits = rows.map(({ text }) => typed.every((word) => text.includes(word)));
      rows.forEach(({ box, row }, n) => { row.hidden = !fits[n] && !box.checked; });
      const shown = rows.filter(({ row }) => !row.hidden).length;
      count.textContent = !typed.length ? "" : list.dataset.shown.replace("{n}", shown).replace("{all}", rows.length);
    }

    field.addEventListener("input", (event) => {
      // The form is as it was.
      event.stopPropagation();
      narrow();
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") list.querySelector("[type=checkbox]:not([hidden] *)")?.focus();
      if (["ArrowDown", "Enter"].includes(event.key)) event.preventDefault();
    });
    narrow();
    return [field, count];
  }

  for (const list of document.querySelectorAll("fieldset.choices[data-search]")) prepare(list);
})();
