// A browser becomes a device that is notified (data-subscribe), and is one no more
// (data-unsubscribe).
(() => {
  const form = document.querySelector("form[data-subscribe]");
  const said = document.querySelector("[data-subscribe-said]");
  const able = "serviceWorker" in navigator && "PushManager" in window;

  function say(sentence) {
    said.textContent = sentence;
    said.hidden = !sentence;
  }

  async function known() {
    const registration = await navigator.serviceWorker.getRegistration("/");
    return registration?.pushManager.getSubscription();
  }

  async function fingerprint(subscription) {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  async function subscribe() {
    if (await Notification.requestPermission() !== "granted") throw new Error(form.dataset.denied);
    await navigator.serviceWorker.register("/service-worker.js");
    const { pushManager } = await navigator.serviceWorker.ready;
    // One that was made for another key of this installation takes nothing from the present one.
    await (await pushManager.getSubscription())?.unsubscribe();
    return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: form.dataset.subscribe });
  }

  async function show() {
    const subscription = await known();
    const own = subscription && await fingerprint(subscription);
    for (const one of document.querySelectorAll("[data-this-device]")) one.hidden = one.dataset.thisDevice !== own;
    form.hidden = Boolean(own && document.querySelector(`[data-this-device="${own}"]`));
  }

  // Whoever removes it here takes it from the browser as well.
  document.addEventListener("submit", async (event) => {
    const gone = event.target.closest("form[data-unsubscribe]");
    if (!able || !gone) return;
    event.preventDefault();
    const subscription = await known();
    if (subscription && await fingerprint(subscription) === gone.dataset.unsubscribe) await subscription.unsubscribe();
    gone.submit();
  });

  if (!form) return;
  say(able ? "" : form.dataset.unable);
  if (!able) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    say("");
    try {
      form.elements.subscription.value = JSON.stringify(await subscribe());
      form.submit();
    } catch (error) {
      say(error.name === "Error" ? error.message : form.dataset.failed);
    }
  });
  show();
})();
