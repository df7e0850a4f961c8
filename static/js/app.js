// Installed as an application, it has a page for when there is no connection. In a tab the service
// worker comes with the first push that its person wants (push.js).
if (matchMedia("(display-mode: standalone)").matches) navigator.serviceWorker?.register("/service-worker.js");
