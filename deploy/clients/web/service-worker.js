// The service worker of a page with Web Push. Copy this file beside the page; it needs no other. Browsers with declarative
// push messages show them without it.
"use strict";

self.addEventListener("push", (event) => {
  const { notification = {}, app_badge: badge } = event.data?.json() ?? {};
  const { title = "", navigate, ...options } = notification;
  // The browser keeps `data`, and no URLs of its own.
  const links = Object.fromEntries((options.actions ?? []).map((action) => [action.action, action.navigate]));
  options.data = { ...options.data, navigate, links };
  const shown = self.registration.showNotification(title, options);
  // Only installed web apps have a badge.
  const badged = badge === undefined ? undefined : self.navigator.setAppBadge?.(badge).catch(() => {});
  event.waitUntil(Promise.all([shown, badged]));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { navigate, links = {} } = event.notification.data ?? {};
  const url = links[event.action] ?? navigate;
  if (url) event.waitUntil(self.clients.openWindow(url));
});
