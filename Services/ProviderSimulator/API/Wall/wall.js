// Draws the phones and their notifications. Payload content is inserted as text, never as markup.
"use strict";

const pageSize = 48;
const $ = (id) => document.getElementById(id);
const phones = new Map(); // "provider token" → the latest state from the simulator
const drawn = new Map(); // the same key → { element, sequence, change }
let order = []; // keys, the most recently added phone first
let shownCount = pageSize;
let generation = null;
let total = 0;
let allowsRemoteImages = false;
let only = "";

// ---- Texts

const clockText = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hour12: false });
const dateText = new Intl.DateTimeFormat("en", { weekday: "long", month: "long", day: "numeric" });
const dayText = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
const number = new Intl.NumberFormat("en");

function ago(milliseconds) {
  const seconds = (Date.now() - milliseconds) / 1000;
  if (seconds < 45) return "now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))}m`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)}h`;
  return dayText.format(milliseconds);
}

const genericWords = new Set(["com", "org", "net", "io", "dev", "app", "ios", "android", "co", "example", "prod"]);

/** A display name: com.example.family-portal → Family Portal. */
function appName(app) {
  if (!app) return "Unknown app";
  const parts = app.split(".").filter((part) => part && !genericWords.has(part.toLowerCase()));
  const word = parts.at(-1) ?? app;
  return word
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .split(/[-_ ]+/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join(" ");
}

/** A stable hue derived from the text. */
function hue(text) {
  let hash = 7;
  for (const character of text ?? "") hash = (hash * 31 + character.codePointAt(0)) >>> 0;
  return (hash * 137.508) % 360;
}

const kindWords = {
  background: "Background push", voip: "VoIP call", complication: "Complication", fileprovider: "File provider",
  mdm: "Device management", liveactivity: "Live Activity", location: "Location query", pushtotalk: "Push to Talk",
  widgets: "Widget reload", controls: "Control reload", data: "Data message", alert: "Silent push",
  notification: "Silent message", plain: "Plain push",
};

const eyebrows = { "time-sensitive": "Time Sensitive", critical: "Critical", passive: "Delivered quietly" };

// ---- Notifications

function put(element, text) {
  element.hidden = text === undefined || text === null || text === "";
  element.textContent = text ?? "";
}

function chip(text, kind) {
  const element = document.createElement("span");
  element.className = `chip ${kind}`;
  element.textContent = text;
  return element;
}

function action(title) {
  const element = document.createElement("span");
  element.textContent = title;
  return element;
}

/** The host of a URL, or the text itself. */
function host(url) {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

function icon(element, app) {
  element.textContent = appName(app).charAt(0);
  element.style.setProperty("--hue", hue(app));
}

function picture(figure, url) {
  figure.hidden = !url;
  if (!url) return;
  if (url.startsWith("data:image/") || (allowsRemoteImages && url.startsWith("https://"))) {
    const image = document.createElement("img");
    image.src = url;
    image.alt = "";
    image.loading = "lazy";
    image.referrerPolicy = "no-referrer";
    figure.replaceChildren(image);
    return;
  }
  // The Content-Security-Policy blocks it: show a placeholder.
  figure.classList.add("absent");
  figure.style.setProperty("--hue", hue(url));
  const place = document.createElement("span");
  place.textContent = host(url);
  figure.replaceChildren(place);
  figure.title = url;
}

function drawState(list, note) {
  const state = note.state && typeof note.state === "object" ? Object.entries(note.state) : [];
  list.hidden = !note.event;
  list.replaceChildren();
  for (const [name, value] of state.slice(0, 6)) {
    const term = document.createElement("dt");
    const detail = document.createElement("dd");
    term.textContent = name;
    detail.textContent = typeof value === "object" ? JSON.stringify(value) : String(value);
    list.append(term, detail);
  }
}

function drawNote(note, platform) {
  const element = $("note").content.firstElementChild.cloneNode(true);
  const part = (selector) => element.querySelector(selector);
  const name = appName(note.app);
  element.dataset.sequence = note.sequence;
  element.dataset.kind = note.kind;
  element.dataset.silent = note.silent;
  if (note.collapseID) element.dataset.collapse = note.collapseID;
  if (note.level) element.dataset.level = note.level;
  if (note.event) element.dataset.event = note.event;
  icon(part(".icon"), note.app);
  if (/^#[0-9a-f]{6}$/i.test(note.color ?? "")) element.style.setProperty("--accent", note.color);

  const eyebrow = note.silent ? kindWords[note.kind] ?? note.kind
    : note.event ? `Live · ${note.event}`
    : platform === "android" ? name
    : platform === "browser" && note.link ? host(note.link) : eyebrows[note.level];
  put(part(".eyebrow"), eyebrow);
  put(part("h3"), note.silent ? null : note.title ?? (platform === "ios" ? name : null));
  put(part("h4"), note.subtitle);
  put(part(".body"), note.body);
  drawState(part(".state"), note);
  part(".actions").hidden = !note.actions;
  part(".actions").replaceChildren(...(note.actions ?? []).map(action));
  const hasData = note.data && typeof note.data === "object" && Object.keys(note.data).length > 0;
  put(part(".data"), note.silent && hasData ? JSON.stringify(note.data) : null);
  picture(part("figure"), note.image);

  const chips = [];
  if (note.replaced > 0) chips.push(chip(`replaced ${note.replaced}`, "replaced"));
  if (note.sound) chips.push(chip(note.sound === "default" ? "sound" : note.sound, "sound"));
  if (note.badge !== undefined) chips.push(chip(note.badge === 0 ? "badge cleared" : `badge ${note.badge}`, "badged"));
  if (!note.silent && !["alert", "notification", "liveactivity", "declarative"].includes(note.kind)) {
    chips.push(chip(kindWords[note.kind] ?? note.kind, "kind"));
  }
  if (!note.silent && hasData) {
    const count = Object.keys(note.data).length;
    const data = chip(`${count} ${count === 1 ? "field" : "fields"} of data`, "more");
    data.title = JSON.stringify(note.data, null, 2);
    chips.push(data);
  }
  part(".chips").hidden = chips.length === 0;
  part(".chips").replaceChildren(...chips);

  const time = part("time");
  time.dateTime = new Date(note.receivedAt).toISOString();
  time.dataset.at = note.receivedAt;
  time.textContent = ago(note.receivedAt);
  return element;
}

const isRunning = (element) => Number("event" in element.dataset && element.dataset.event !== "end");

/** Stacks notifications of one group under the newest, as both platforms do. */
function drawNotes(list, phone, previous) {
  const opened = new Set([...list.querySelectorAll(".note.open")].map((element) => element.dataset.stack));
  const stacks = new Map();
  const elements = [];
  for (const note of phone.notifications) {
    const element = drawNote(note, phone.platform);
    if (note.sequence > previous) element.classList.add("arrived");
    elements.push(element);
    if (note.silent || !note.group) continue;
    const key = `${note.app} ${note.group}`;
    element.dataset.stack = key;
    if (!stacks.has(key)) stacks.set(key, []);
    stacks.get(key).push(element);
  }
  // Live Activities stay on top.
  elements.sort((one, other) => isRunning(other) - isRunning(one));
  for (const [key, members] of stacks) {
    if (members.length < 3) continue;
    const [top, ...rest] = members;
    // The rest of the group follows the newest.
    for (const element of rest) elements.splice(elements.indexOf(element), 1);
    elements.splice(elements.indexOf(top) + 1, 0, ...rest);
    top.classList.add("stacked");
    top.querySelector(".chips").hidden = false;
    const more = document.createElement("button");
    more.type = "button";
    more.className = "chip toggle";
    const open = (isOpen) => {
      top.classList.toggle("open", isOpen);
      for (const element of rest) element.classList.toggle("under", !isOpen);
      more.textContent = isOpen ? "show less" : `${rest.length} more`;
      more.setAttribute("aria-expanded", isOpen);
    };
    more.addEventListener("click", () => open(!top.classList.contains("open")));
    top.querySelector(".chips").append(more);
    open(opened.has(key));
  }
  list.replaceChildren(...elements);
}

// ---- Phones

function drawPhone(key, phone) {
  const known = drawn.get(key);
  if (known?.change === phone.change) return known.element;
  const element = known?.element ?? $("phone").content.firstElementChild.cloneNode(true);
  const part = (selector) => element.querySelector(selector);
  element.dataset.token = phone.token;
  element.dataset.platform = phone.platform;
  element.className = `phone ${phone.platform}`;
  // Hues from green over blue and violet to red, without browns.
  element.style.setProperty("--hue", 150 + (hue(phone.token) * 210) / 360);
  drawNotes(part(".notes"), phone, known?.sequence ?? (settled ? 0 : Infinity));

  // The address bar of a browser.
  part(".island").textContent = phone.platform === "browser" ? host(phone.notifications.find((note) => note.link)?.link ?? "") : "";

  const apps = [...new Set([phone.app, ...phone.notifications.map((note) => note.app)].filter(Boolean))].slice(0, 4);
  part(".dock").replaceChildren(...apps.map((app) => {
    const tile = document.createElement("span");
    tile.className = "icon";
    tile.title = app;
    icon(tile, app);
    const badge = app === phone.app ? phone.badge : phone.notifications.find((note) => note.app === app && note.badge !== undefined)?.badge;
    if (badge > 0) {
      const bubble = document.createElement("b");
      bubble.className = "badge";
      bubble.textContent = badge > 9999 ? "9999+" : number.format(badge);
      tile.append(bubble);
    }
    return tile;
  }));

  part(".caption h2").textContent = phone.app ? appName(phone.app) : "Nothing arrived";
  part(".caption h2").title = phone.app ?? "";
  part(".token code").textContent = phone.token.length > 22 ? `${phone.token.slice(0, 12)}…${phone.token.slice(-6)}` : phone.token;
  part(".token code").title = phone.token;
  put(part(".environment"), phone.environment === "development" ? "sandbox" : null);
  part(".counts").textContent =
    `${number.format(phone.delivered)} delivered`
    + (phone.cleared > 0 ? ` · ${number.format(phone.cleared)} taken back` : "")
    + (phone.refused > 0 ? ` · ${number.format(phone.refused)} not` : "");
  part(".counts").classList.toggle("trouble", phone.refused > 0);
  for (const clock of element.querySelectorAll(".clock")) clock.textContent = clockText.format(Date.now());
  part(".date").textContent = dateText.format(Date.now());

  if (known && settled) {
    element.classList.remove("rings");
    requestAnimationFrame(() => element.classList.add("rings"));
  }
  drawn.set(key, { element, sequence: phone.sequence, change: phone.change });
  return element;
}

function matches(phone, words) {
  if (only && phone.platform !== only) return false;
  if (words.length === 0) return true;
  phone.text ??= [
    phone.token, phone.app, appName(phone.app), phone.environment,
    ...phone.notifications.flatMap((note) => [note.title, note.subtitle, note.body, note.collapseID]),
  ].join(" ").toLowerCase();
  return words.every((word) => phone.text.includes(word));
}

let settled = false; // whether the first phones are drawn; later ones are announced

function draw() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = order.filter((key) => matches(phones.get(key), words));
  const wanted = found.slice(0, shownCount);
  const wall = $("wall");
  const elements = wanted.map((key) => drawPhone(key, phones.get(key)));
  const keep = new Set(elements);
  for (const element of [...wall.children]) if (!keep.has(element)) element.remove();
  elements.forEach((element, index) => {
    if (wall.children[index] !== element) wall.insertBefore(element, wall.children[index] ?? null);
  });
  const wantedKeys = new Set(wanted);
  for (const key of drawn.keys()) if (!wantedKeys.has(key)) drawn.delete(key);

  $("empty").hidden = phones.size > 0;
  $("none").hidden = phones.size === 0 || found.length > 0;
  $("more").hidden = found.length <= shownCount;
  $("more").textContent = `Show more of ${number.format(found.length)} phones`;
  let delivered = 0;
  for (const phone of phones.values()) delivered += phone.delivered;
  $("summary").textContent = phones.size === 0 ? ""
    : `${number.format(phones.size)} ${phones.size === 1 ? "phone" : "phones"} · ${number.format(delivered)} delivered`
      + (found.length < phones.size ? ` · ${number.format(found.length)} shown` : "");
  document.body.dataset.phones = phones.size;
}

let isWaiting = false;

/** Draws at most once a frame. */
function drawSoon() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    draw();
  });
}

function take(event) {
  if (event.generation !== generation) {
    phones.clear();
    drawn.clear();
    $("wall").replaceChildren();
    order = [];
    generation = event.generation;
  }
  total = event.total;
  allowsRemoteImages = event.remoteImages;
  for (const phone of event.phones) {
    const key = `${phone.provider} ${phone.token}`;
    // A visible phone keeps its position, so that nothing moves under the pointer.
    const stays = phones.has(key) && (drawn.has(key) || !settled);
    phones.set(key, phone);
    if (stays && settled) continue;
    const place = order.indexOf(key);
    if (place >= 0) order.splice(place, 1);
    order.unshift(key);
  }
  // Remove phones that the simulator removed.
  for (const key of order.splice(Math.max(total, pageSize))) phones.delete(key);
  drawSoon();
  if (event.phones.length < 100) setTimeout(() => (settled = true), 0);
}

// ---- Page

function state(name, text) {
  $("live").dataset.state = name;
  $("live").textContent = text;
}

function listen() {
  const source = new EventSource("/wall/events");
  source.onopen = () => {
    // A new connection sends all phones again.
    settled = false;
    generation = null;
    state("live", "live");
  };
  source.onmessage = (message) => take(JSON.parse(message.data));
  source.onerror = () => state("lost", "reconnecting");
}

$("search").addEventListener("input", () => {
  shownCount = pageSize;
  drawSoon();
});
$("more").addEventListener("click", () => {
  shownCount += pageSize;
  drawSoon();
});
for (const button of document.querySelectorAll("[data-only]")) {
  button.addEventListener("click", () => {
    only = button.dataset.only;
    for (const other of document.querySelectorAll("[data-only]")) other.setAttribute("aria-pressed", other === button);
    shownCount = pageSize;
    drawSoon();
  });
}

const root = document.documentElement;
const asked = new URLSearchParams(location.search).get("theme");
if (asked === "light" || asked === "dark") root.dataset.theme = asked;
$("theme").addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
});

setInterval(() => {
  for (const time of document.querySelectorAll("time[data-at]")) time.textContent = ago(Number(time.dataset.at));
  for (const clock of document.querySelectorAll(".clock")) clock.textContent = clockText.format(Date.now());
}, 15_000);

listen();
