/**
 * A client of the HTTP APIs for web apps: inbox, live stream, preferences, presence, receipts and Web Push. Copy this file;
 * only Web Push needs another, `service-worker.js`.
 *
 *     import { Heliograph } from "./heliograph.js";
 *     const heliograph = new Heliograph({ url: "/rules", bearer: (isRefused) => session.token(isRefused) });
 *
 * Every function throws HeliographError. Requests that failed without an answer, or with 429 or 5xx, are repeated: every
 * request of the API may be repeated.
 */
export class Heliograph {
  #url;
  #events;
  #registry;
  #bearer;
  #fetch;
  #renewal = null;
  #lastPresence = Promise.resolve();

  /**
   * @param {object} options
   * @param {string} options.url the address of rules: on the origin of the page, or with its origin in `web-origins`
   *   of the app
   * @param {string} [options.events] the address of events-api, for `sendTestPush`
   * @param {string} [options.registry] the address of token-registry, for `enablePush`
   * @param {(isRefused: boolean) => string | Promise<string>} options.bearer returns the user's token. The argument is
   *   true after the server has refused the last one; the function then fetches a new token
   * @param {string} [options.device] an id of this browser, for presence and Web Push; kept in the local storage if absent
   * @param {typeof fetch} [options.fetch]
   */
  constructor({ url, events, registry, bearer, device = storedDevice(), fetch = globalThis.fetch.bind(globalThis) }) {
    this.#url = url.replace(/\/+$/, "");
    this.#events = events?.replace(/\/+$/, "");
    this.#registry = registry?.replace(/\/+$/, "");
    this.#bearer = bearer;
    this.#fetch = fetch;
    this.device = device;
  }

  // Inbox

  /**
   * A page of the inbox, latest first: `{items, next, unread}`.
   * @param {object} [options]
   * @param {string} [options.before] the `next` of the previous page
   * @param {number} [options.limit] from 1 to 200
   * @param {boolean} [options.unread] returns unread items only
   * @param {string} [options.thread] returns items of this thread only
   */
  inbox({ before, limit = 50, unread = false, thread } = {}) {
    const query = new URLSearchParams({ limit });
    if (before) query.set("before", before);
    if (unread) query.set("unread", "true");
    if (thread) query.set("thread", thread);
    return this.#call("GET", `/v1/inbox?${query}`);
  }

  /** The number of unread items. */
  async unreadCount() {
    return (await this.#call("GET", "/v1/inbox/unread")).unread;
  }

  /** One item. Throws an error with the status 404 if the inbox does not have it. */
  item(id) {
    return this.#call("GET", `/v1/inbox/${encodeURIComponent(id)}`);
  }

  /** Deletes an item. */
  deleteItem(id) {
    return this.#call("DELETE", `/v1/inbox/${encodeURIComponent(id)}`);
  }

  /**
   * Marks items as read, on all devices of the user. Returns `{marked, unread}`.
   * @param {{ids: string[]} | {thread: string} | {until: string} | {all: true}} selection
   */
  markRead(selection) {
    return this.#call("POST", "/v1/inbox/read", selection);
  }

  /**
   * Reports that the user opened or dismissed notifications. Opening also marks as read.
   * @param {{id: string, what: "opened" | "dismissed"}[]} receipts at most 500
   */
  report(receipts) {
    return this.#call("POST", "/v1/receipts", { receipts });
  }

  // Preferences

  /** The user's choices (`chosen`), and all options with their effective values. */
  preferences() {
    return this.#call("GET", "/v1/preferences");
  }

  /** Changes choices with a merge patch (RFC 7396): absent members stay, and null resets a choice. */
  changePreferences(patch) {
    return this.#call("PATCH", "/v1/preferences", patch);
  }

  // Presence

  /**
   * Reports that the app is open, and the thread on the screen, and renews the report every 30 s until `disappear`. Call
   * it when the page becomes visible and when the thread changes.
   */
  appear(viewing = null) {
    clearInterval(this.#renewal);
    const renew = (attempts) => this.#presence("PUT", { viewing, for: 45 }, attempts);
    this.#renewal = setInterval(() => renew(1).catch(() => {}), 30_000);
    return renew(3);
  }

  /** Reports that the app is closed. Without it, the last report expires after 45 s. */
  disappear() {
    clearInterval(this.#renewal);
    return this.#presence("DELETE", undefined, 3);
  }

  /** Sends a report after its predecessor, so that the server gets them in order. */
  #presence(method, body, attempts) {
    const path = `/v1/presence/${encodeURIComponent(this.device)}`;
    const send = () => this.#call(method, path, body, { attempts });
    const sent = this.#lastPresence.then(send, send);
    this.#lastPresence = sent.catch(() => {});
    return sent;
  }

  // Test push

  /**
   * Sends a test push to the user's own devices, for a screen “Is it working?”. Returns `{decision, reason, devices,
   * complete}`; each device has `provider`, `result` (`accepted`, or the kind of failure) and `reason`. A user may send one
   * in 30 s, and five in an hour; another throws an error with the status 429.
   * @param {number} [wait] the longest wait for the answers, from 0 to 30 s
   */
  sendTestPush(wait = 10) {
    if (this.#events === undefined) throw new Error("the client has no address of events-api");
    return this.#call("POST", `/v1/test-pushes?wait=${wait}s`, undefined, { attempts: 1, url: this.#events, time: 60_000 });
  }

  // Web Push

  /**
   * Subscribes this browser and registers it for the user. Call it from a click, since browsers ask for the permission, and
   * again at each start of the page while `Notification.permission` is "granted".
   * @param {ServiceWorkerRegistration} registration the registration of `service-worker.js`
   * @param {string} key the app's public VAPID key; `pushctl doctor` prints it
   */
  async enablePush(registration, key) {
    const subscription = await subscribed(registration.pushManager, key);
    const body = {
      locale: navigator.language, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      registrations: [{ kind: "web-push", subscription: subscription.toJSON() }],
    };
    await this.#call("PUT", this.#installation(), body, { url: this.#registry });
  }

  /** Ends the registration of this browser. Call it before the session's token is discarded. */
  disablePush() {
    return this.#call("DELETE", this.#installation(), undefined, { url: this.#registry });
  }

  #installation() {
    if (this.#registry === undefined) throw new Error("the client has no address of token-registry");
    return `/v1/installations/${encodeURIComponent(this.device)}`;
  }

  // Live stream

  /**
   * New items of the inbox, live. Reconnects with the id of the last item, until it is closed or the server refuses the
   * user. Returns a function that closes it. `EventSource` cannot send a bearer token, so this reads the stream itself.
   *
   * @param {object} listener
   * @param {(item: object) => void} listener.item a new item, for a banner and for the list
   * @param {(id: string) => void} [listener.removed] an item was taken back or deleted: remove it from the list
   * @param {(isComplete: boolean) => void} [listener.connected] if it is not complete, items may have been missed: read
   *   the inbox again
   * @param {(error: HeliographError) => void} [listener.failed] the server refused the user
   */
  listen({ item, removed = () => {}, connected = () => {}, failed = () => {} }) {
    const abort = new AbortController();
    this.#follow({ item, removed, connected }, abort.signal).catch((error) => {
      if (!abort.signal.aborted) failed(error);
    });
    return () => abort.abort();
  }

  async #follow(listener, signal) {
    const stream = new EventStream();
    let failures = 0;
    let lastContact = 0;
    while (!signal.aborted) {
      let retryAfter = 0;
      try {
        // The server remembers an hour.
        if (Date.now() - lastContact > 3_300_000) stream.lastId = null;
        const headers = { Accept: "text/event-stream" };
        if (stream.lastId !== null) headers["Last-Event-ID"] = stream.lastId;
        const response = await this.#open("GET", "/v1/inbox/stream", { headers, signal });
        if (!response.ok) throw await refusal(response);
        listener.connected(stream.lastId !== null);
        stream.restart();
        for await (const text of chunks(response, signal)) {
          failures = 0;
          lastContact = Date.now();
          for (const event of stream.append(text)) {
            if (event.name === "item") listener.item(JSON.parse(event.data));
            else if (event.name === "removed") listener.removed(JSON.parse(event.data).id);
          }
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof HeliographError)) throw error;
        // The server does not know the id, for example after its database was restored.
        if (error.status === 400 && stream.lastId !== null) stream.lastId = null;
        else if (!error.isTransient) throw error;
        failures += 1;
        retryAfter = error.retryAfter;
      }
      await sleep(pause(failures, stream.retry, 60_000, retryAfter), signal);
    }
  }

  // Requests

  async #call(method, path, body, { attempts = 3, url = this.#url, time = 30_000 } = {}) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const options = { url, signal: AbortSignal.timeout(time) };
        if (body !== undefined) {
          options.headers = { "Content-Type": "application/json" };
          options.body = JSON.stringify(body);
        }
        const response = await this.#open(method, path, options);
        if (!response.ok) throw await refusal(response);
        return response.status === 204 ? null : await response.json();
      } catch (error) {
        const failure = error instanceof HeliographError ? error : new HeliographError(null, error.message);
        if (!failure.isTransient || attempt >= attempts) throw failure;
        await sleep(pause(attempt, 500, 10_000, failure.retryAfter));
      }
    }
  }

  /** Sends a request, and once more with a new bearer token after 401. Follows no redirect. */
  async #open(method, path, { url = this.#url, ...options }) {
    for (const isRefused of [false, true]) {
      const headers = { ...options.headers, Authorization: `Bearer ${await this.#bearer(isRefused)}` };
      let response;
      try {
        response = await this.#fetch(url + path, {
          ...options, method, headers, redirect: "error", cache: "no-store", credentials: "omit",
        });
      } catch (error) {
        throw new HeliographError(null, error.message);
      }
      if (response.status !== 401 || isRefused) return response;
      await response.body?.cancel();
    }
  }
}

/**
 * Closes the shown notifications that a clear command names: they were taken back, or read on another device. Call it in
 * the service worker for each push. Notifications are found by their tag, so show them with the rule's collapse key or
 * the notification's id as `tag`.
 *
 *     self.addEventListener("push", (event) => {
 *       const { data } = event.data.json();
 *       event.waitUntil(clearShown(self.registration, data).then((isCommand) => isCommand || show(data)));
 *     });
 *
 * @param {ServiceWorkerRegistration} registration
 * @param {Record<string, string>} [data] the data of the push
 * @returns {Promise<boolean>} whether the push was a clear command
 */
export async function clearShown(registration, data) {
  const tags = clearedNotifications(data);
  if (tags.length === 0) return false;
  const shown = await registration.getNotifications();
  for (const notification of shown) if (tags.includes(notification.tag)) notification.close();
  return true;
}

/** The tags that a clear command names; none for any other push. */
export function clearedNotifications(data) {
  try {
    const tags = JSON.parse(data?.heliograph_clear ?? "[]");
    return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [];
  } catch {
    return [];
  }
}

/**
 * Shows the state of a thing in progress, such as a delivery, in one notification, and closes it at the end. Call it in the
 * service worker for each push, after {@link clearShown}.
 *
 * @param {ServiceWorkerRegistration} registration
 * @param {Record<string, string>} [data] the data of the push
 * @param {(live: object) => NotificationOptions} [options] further options for a state, such as an icon
 * @returns {Promise<boolean>} whether the push was a state
 */
export async function showLive(registration, data, options = () => ({})) {
  const live = liveState(data);
  if (live === null) return false;
  const shown = await registration.getNotifications({ tag: live.tag });
  if (shown.some((notification) => live.time !== null && live.time < (notification.data?.time ?? ""))) return true;
  if (live.hasEnded) {
    for (const notification of shown) notification.close();
  } else {
    await registration.showNotification(live.title ?? "", {
      body: live.body ?? "", tag: live.tag, silent: shown.length > 0, data: { time: live.time ?? "" }, ...options(live),
    });
  }
  return true;
}

/** The state of a thing in progress that a push carries; null for any other push. */
export function liveState(data) {
  if (typeof data?.live !== "string") return null;
  let state = {};
  try {
    state = JSON.parse(data.live_state ?? "{}");
  } catch {
    // The words are enough.
  }
  return {
    name: data.live, item: data.live_item ?? "", tag: `live/${data.live}/${data.live_item ?? ""}`,
    hasEnded: data.live_event === "end", time: data.live_time ?? null, state,
    title: data.live_title ?? null, body: data.live_body ?? null,
  };
}

/** A subscription for the key. One for an earlier key is replaced: browsers bind a subscription to its key. */
async function subscribed(pushManager, key) {
  const options = { userVisibleOnly: true, applicationServerKey: key };
  try {
    return await pushManager.subscribe(options);
  } catch (error) {
    if (error.name !== "InvalidStateError") throw error;
    await (await pushManager.getSubscription())?.unsubscribe();
    return pushManager.subscribe(options);
  }
}

/** An error of a request. `status` is null without an answer. `isTransient`: try again later. */
export class HeliographError extends Error {
  constructor(status, detail, retryAfter = 0) {
    super(status === null ? detail : `status ${status}: ${detail}`);
    this.status = status;
    this.isTransient = status === null || status === 408 || status === 429 || status >= 500;
    /** In milliseconds. */
    this.retryAfter = retryAfter;
  }
}

/** Reads server-sent events (WHATWG HTML §9.2.6) from the parts of a response. */
export class EventStream {
  /** The id of the last event; null before the first id. */
  lastId = null;
  /** The server's pause before a reconnect, in milliseconds. */
  retry = 2000;
  #rest = "";
  #id = null;
  #name = "";
  #data = [];

  /** Begins a new connection: discards an incomplete event. */
  restart() {
    this.#rest = "";
    this.#id = this.lastId;
    this.#name = "";
    this.#data = [];
  }

  /** The events that the text completes. */
  *append(text) {
    this.#rest += text;
    // A return at the end may be the first half of CRLF.
    for (let match; (match = /\r\n|\n|\r(?!$)/.exec(this.#rest)); ) {
      const line = this.#rest.slice(0, match.index);
      this.#rest = this.#rest.slice(match.index + match[0].length);
      if (line === "") {
        this.lastId = this.#id;
        if (this.#data.length > 0) yield { name: this.#name || "message", data: this.#data.join("\n") };
        this.#name = "";
        this.#data = [];
        continue;
      }
      const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (field === "event") this.#name = value;
      else if (field === "data") this.#data.push(value);
      else if (field === "id" && !value.includes("\0")) this.#id = value;
      else if (field === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
    }
  }
}

/** The text of a response. Ends it after a minute without data: the server sends a comment every 15 s. */
async function* chunks(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    while (true) {
      let timer;
      const silence = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new HeliographError(null, "no data for a minute")), 60_000);
      });
      let part;
      try {
        part = await Promise.race([reader.read(), silence]);
      } catch (error) {
        throw error instanceof HeliographError ? error : new HeliographError(null, error.message);
      } finally {
        clearTimeout(timer);
      }
      if (part.done || signal.aborted) return;
      yield part.value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The error of a refused request. Problems (RFC 9457) have the cause in `detail`. */
async function refusal(response) {
  const problem = await response.json().catch(() => null);
  const seconds = Number(response.headers.get("Retry-After")) || 0;
  return new HeliographError(response.status, problem?.detail ?? "no detail", Math.min(seconds, 3600) * 1000);
}

/** Doubled each time, with a random part, so that browsers do not return together. */
function pause(attempt, base, limit, retryAfter) {
  const whole = Math.min(limit, base * 2 ** Math.min(Math.max(attempt - 1, 0), 20));
  return retryAfter + (whole / 2) * (1 + Math.random());
}

function sleep(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

/** The id of this browser, in its local storage. */
function storedDevice() {
  const key = "heliograph-device";
  const stored = localStorage.getItem(key);
  if (stored) return stored;
  const device = `web-${crypto.randomUUID()}`;
  localStorage.setItem(key, device);
  return device;
}
