// A call that becomes pending while a page is open: a notification and a sound, in browsers whose
// person wants them (data-alerts). One tab of several gives it.
(() => {
  const STORE = { notification: "alert-notification", sound: "alert-sound" };
  const LAST = "alerted-at";
  const QUIET_MS = 3000;
  const settings = document.querySelector("[data-alerts]");
  let pending;

  function wants(what) {
    return localStorage.getItem(STORE[what]) === "on";
  }

  // Browsers play nothing before somebody pressed something on the page: until then `resume()` does
  // not end. A sound of long ago is not played then.
  async function play() {
    const context = new AudioContext();
    setTimeout(() => context.close(), 1000);
    await context.resume();
    const tones = [[660, 0], [880, 0.15]];
    for (const [frequency, at] of tones) {
      const tone = context.createOscillator();
      const volume = context.createGain();
      tone.frequency.value = frequency;
      volume.gain.setValueAtTime(0.15, context.currentTime + at);
      volume.gain.exponentialRampToValueAtTime(0.001, context.currentTime + at + 0.3);
      tone.connect(volume).connect(context.destination);
      tone.start(context.currentTime + at);
      tone.stop(context.currentTime + at + 0.3);
    }
  }

  // A device of this browser shows a push of it already.
  async function isDevice() {
    const registration = await navigator.serviceWorker?.getRegistration("/");
    return Boolean(await registration?.pushManager?.getSubscription());
  }

  // Nothing of the call: a notification is seen by others too.
  async function notify() {
    if (Notification.permission !== "granted" || await isDevice()) return;
    const shown = new Notification(`${document.body.dataset.alert} (${pending})`, {
      tag: "approval.needed", renotify: true, icon: "/static/img/app-192.png",
    });
    shown.addEventListener("click", () => {
      shown.close();
      window.open("/queue/", "_blank");
    });
  }

  async function give() {
    const last = Number(localStorage.getItem(LAST));
    if (Date.now() - last < QUIET_MS) return;
    localStorage.setItem(LAST, Date.now());
    // Not waited for: other tabs wait for this one.
    if (wants("sound")) play().catch(() => {});
    // Whoever sees the page needs no notification of it.
    if (wants("notification") && !document.hasFocus()) await notify();
  }

  // A phone's browser shows none but by a push: nothing more is to be done there.
  function alert() {
    navigator.locks.request("alert", () => give().catch(() => {}));
  }

  document.addEventListener("queue:count", ({ detail }) => {
    const isMore = pending !== undefined && detail > pending;
    pending = detail;
    if (isMore && navigator.locks && (wants("sound") || wants("notification"))) alert();
  });

  async function choose({ target }) {
    const what = target.dataset.alert;
    const said = settings.querySelector("[role=status]");
    said.textContent = "";
    if (target.checked && what === "notification" && await Notification.requestPermission() !== "granted") {
      target.checked = false;
      said.textContent = settings.dataset.denied;
    }
    if (target.checked && what === "sound") play().catch(() => {});
    localStorage.setItem(STORE[what], target.checked ? "on" : "off");
  }

  if (!settings || !navigator.locks || !("Notification" in window)) return;
  settings.hidden = false;
  for (const box of settings.querySelectorAll("[data-alert]")) {
    box.checked = wants(box.dataset.alert);
    box.addEventListener("change", choose);
  }
})();
