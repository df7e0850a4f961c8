// Notifications while no page is open, and a page for when there is no connection. That page and
// its parts are all that is kept: nothing that anybody read, and no answer of the server's.
const OFFLINE = "/offline/";
// What that page is drawn with, PARTS, stands before this file (config/service_worker.py): other
// names make another worker, which keeps them in place of these.
const KEPT = `offline ${PARTS[0]}`;
const APPROVAL = "approval.needed";
// More of them are one notification that leads to the queue.
const SHOWN_MAX = 5;

async function keep() {
  const cache = await caches.open(KEPT);
  await cache.addAll([OFFLINE, ...PARTS]);
  await skipWaiting();
}

async function begin() {
  const old = (await caches.keys()).filter((name) => name !== KEPT);
  await Promise.all(old.map((name) => caches.delete(name)));
  await clients.claim();
}

addEventListener("install", (event) => event.waitUntil(keep()));
addEventListener("activate", (event) => event.waitUntil(begin()));

// A form that was sent is not answered by this page: it would hide that nobody knows its outcome.
addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (request.mode === "navigate") event.respondWith(fetch(request).catch(() => caches.match(OFFLINE)));
  else if (PARTS.includes(new URL(request.url).pathname)) {
    event.respondWith(fetch(request).catch(() => caches.match(request)));
  }
});

function count(pending) {
  return (pending ? navigator.setAppBadge?.(pending) : navigator.clearAppBadge?.())?.catch(() => {});
}

// A newer one takes the place of the older one on the same thing.
async function show({ kind, title, id, about, pending }) {
  await count(pending);
  const shown = (await registration.getNotifications()).filter((one) => one.data?.kind === kind && one.tag !== about);
  const many = kind === APPROVAL && shown.length >= SHOWN_MAX;
  if (many) shown.forEach((one) => one.close());
  await registration.showNotification(many ? `${title} (${pending})` : title, {
    tag: many ? APPROVAL : about,
    renotify: true,
    icon: "/static/img/app-192.png",
    data: { kind, address: many ? "/queue/" : `/profile/notifications/open/${id}/` },
  });
}

addEventListener("push", (event) => event.waitUntil(show(event.data.json())));

// Always another window: somebody may be typing in the one that is open.
addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(clients.openWindow(event.notification.data.address));
});
