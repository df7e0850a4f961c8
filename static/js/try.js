// Ctrl/⌘-Enter sends the form that is being filled in; a file goes into its field as base64.
const unveil = (root) => {
  for (const part of root.querySelectorAll("[data-with-script]")) part.hidden = false;
  for (const part of root.querySelectorAll("[data-without-script]")) part.hidden = true;
};
unveil(document);
document.body.addEventListener("htmx:load", (event) => unveil(event.target.parentElement ?? document));

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target.closest("[data-try]");
  if (!form) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector(".button.primary"));
});

document.addEventListener("change", async (event) => {
  const picked = event.target.closest("input[type=file][data-into]");
  const file = picked?.files[0];
  if (!file) return;
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  const into = document.getElementById(picked.dataset.into);
  into.value = btoa(text);
  into.dispatchEvent(new Event("input", { bubbles: true }));
});
