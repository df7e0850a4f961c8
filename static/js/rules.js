// Rules change places by dragging too. The buttons beside them do the same without a mouse, and
// without this script.
(() => {
  const list = document.querySelector("ol.rules[data-place]");
  if (!list) return;
  let dragged = null;

  for (const rule of list.children) rule.draggable = true;

  list.addEventListener("dragstart", (event) => {
    dragged = event.target.closest("li");
    dragged.classList.add("dragged");
    event.dataTransfer.effectAllowed = "move";
  });

  list.addEventListener("dragover", (event) => {
    const over = event.target.closest("li");
    if (!dragged || !over) return;
    event.preventDefault();
    if (over === dragged) return;
    const { top, height } = over.getBoundingClientRect();
    over[event.clientY < top + height / 2 ? "before" : "after"](dragged);
  });

  // Dropped or not: it lies where it lies, and that is what is saved and shown anew.
  list.addEventListener("dragend", () => {
    const form = dragged.querySelector("form.row-actions");
    const place = document.createElement("input");
    place.type = "hidden";
    place.name = "place";
    place.value = [...list.children].indexOf(dragged) + 1;
    form.append(place);
    form.submit();
  });
})();
