package heliograph

import java.io.ByteArrayOutputStream
import java.io.Closeable
import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL
import java.net.URLEncoder
import java.util.Random
import java.util.UUID
import java.util.concurrent.Executors
import java.util.concurrent.ScheduledFuture
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.thread
import kotlin.concurrent.withLock
import org.json.JSONArray
import org.json.JSONObject

/**
 * A client of the HTTP APIs of token-registry and rules, for one app on one device. Copy this file; it needs only the
 * Android SDK. Create one client in the `Application` and keep it.
 *
 * All functions wait for the server. Call them from a background thread, such as `Dispatchers.IO` or a `Worker`.
 *
 * FCM gives the token to a service of the app:
 *
 *     class PushService : FirebaseMessagingService() {
 *         // On a background thread. Without a connection, the next signIn registers the token.
 *         override fun onNewToken(token: String) {
 *             runCatching { app.heliograph.setToken(DeviceToken.fcm(token)) }
 *         }
 *
 *         // Of notifications, only while the app is in the foreground; otherwise the system shows them.
 *         override fun onMessageReceived(message: RemoteMessage) {
 *             val cleared = Heliograph.clearedNotifications(message.data)
 *             val manager = getSystemService(NotificationManager::class.java)
 *             // FCM shows notifications with the number 0.
 *             for (tag in cleared) manager.cancel(tag, 0)
 *             if (cleared.isNotEmpty()) return
 *             // The notification's id, unless the rule sets a collapse key.
 *             val id = message.notification?.tag
 *             app.showBanner(id, message.notification?.title, message.notification?.body)
 *         }
 *     }
 *
 * At each launch, `onNewToken` is not called. Ask for the token, then sign in:
 *
 *     FirebaseMessaging.getInstance().token.addOnSuccessListener { token ->
 *         background.execute { heliograph.setToken(DeviceToken.fcm(token)); heliograph.signIn(userId, details) }
 *     }
 *
 * @param registry the address of token-registry, such as `https://push.example.com/registry`
 * @param rules the address of rules
 * @param store keeps the installation id, the tokens and unsent receipts across restarts
 * @param events the address of events-api, for [sendTestPush]; null if the app has none
 * @param bearer returns the signed-in user's token. Its argument is true after the server has refused the last one; it
 *   then fetches a new token
 */
class Heliograph(
    private val registry: String,
    private val rules: String,
    private val store: HeliographStore,
    private val http: HeliographHttp = HeliographHttp(),
    private val events: String? = null,
    private val bearer: (isRefused: Boolean) -> String
) {
    /** The time in milliseconds after which an unchanged registration is sent again, to refresh its last-seen time. */
    var refreshInterval: Long = 86_400_000
    /** The number of attempts for a registration or a sign-out, with pauses of 2 s, 4 s and so on between them. */
    var registrationAttempts = 5

    private val random = Random()

    // Registration

    private val lock = ReentrantLock()
    private val changed = lock.newCondition()
    private val state: JSONObject = runCatching { JSONObject(store.get("installation") ?: "{}") }.getOrDefault(JSONObject())

    /** The random id of this installation. It stays the same until the store is erased. Keep it secret. */
    val installation: String = state.optString("installation").ifEmpty { UUID.randomUUID().toString() }

    init {
        change { it.put("installation", installation) }
    }

    /**
     * Assigns this installation to a user, and registers its tokens. Call it after sign-in and at each launch.
     *
     * @param user is compared with the last one only. The bearer token decides the user at the server
     * @return whether a request was necessary. An unchanged registration is sent once a day
     */
    fun signIn(user: String, details: InstallationDetails = InstallationDetails()): Boolean {
        change { it.put("user", user).put("details", details.json()) }
        flushReceipts()
        return synchronize()
    }

    /**
     * Stores a new or rotated token, and registers it if a user is signed in.
     *
     * @return whether a request was necessary
     */
    fun setToken(token: DeviceToken): Boolean {
        change { it.put("tokens", JSONArray(tokens().filter { other -> !token.replaces(other) } + token.json())) }
        return synchronize()
    }

    /**
     * Ends the user's registrations on this installation. Call it while the user's bearer token is still valid. After an
     * error, call it again before you discard the bearer token. The next sign-in on this device ends them too.
     */
    fun signOut() {
        stopRenewal()
        flushReceipts()
        outbox.withLock { store.put("receipts", null) }
        // A thread between two attempts of a registration finds no user.
        change { it.remove("user"); it.remove("sent") }
        lock.withLock {
            repeatedly(registrationAttempts, 2000) { call("DELETE", "$registry/v1/installations/${encode(installation)}") }
        }
    }

    private fun tokens(): List<JSONObject> = (state.optJSONArray("tokens") ?: JSONArray()).objects()

    private fun change(edit: (JSONObject) -> Unit) = lock.withLock {
        edit(state)
        store.put("installation", state.toString())
        changed.signalAll()
    }

    /** Sends the registration until the server has the current one. The pauses release the lock. */
    private fun synchronize(): Boolean = lock.withLock {
        var hasSent = false
        var attempt = 0
        while (true) {
            val user = state.optString("user", "")
            if (user == "" || tokens().isEmpty()) return hasSent
            val body = JSONObject((state.optJSONObject("details") ?: JSONObject()).toString())
                .put("registrations", JSONArray(tokens()))
            val sent = state.optJSONObject("sent")
            val age = System.currentTimeMillis() - (sent?.optLong("at") ?: 0)
            // A clock that was set back makes the age negative.
            if (sent != null && sent.optString("user") == user && sent.optString("body") == body.toString() &&
                age in 0 until refreshInterval) return hasSent
            try {
                call("PUT", "$registry/v1/installations/${encode(installation)}", body)
                hasSent = true
                attempt = 0
                change {
                    it.put("sent", JSONObject().put("user", user).put("body", body.toString())
                        .put("at", System.currentTimeMillis()))
                }
            } catch (error: HeliographUnavailable) {
                attempt += 1
                if (attempt >= registrationAttempts) throw error
                changed.await(pause(attempt, 2000, error.retryAfter), TimeUnit.MILLISECONDS)
            }
        }
        @Suppress("UNREACHABLE_CODE") hasSent
    }

    companion object {
        /**
         * The tags of the shown notifications that a data message removes; empty for any other message. They were taken
         * back, or read on another device. A tag is the notification's id, or the collapse key of its rule.
         */
        fun clearedNotifications(data: Map<String, String>): List<String> {
            val text = data["heliograph_clear"] ?: return emptyList()
            val tags = runCatching { JSONArray(text) }.getOrNull() ?: return emptyList()
            return (0 until tags.length()).mapNotNull { tags.opt(it) as? String }
        }
    }

    /**
     * The state of a thing in progress, such as a delivery, that a data message carries. Show it as an ongoing notification
     * with the tag [LiveState.tag], and cancel that tag after [LiveState.hasEnded]:
     *
     *     val live = heliograph.liveState(message.data)
     *     if (live != null) { if (live.hasEnded) manager.cancel(live.tag, 0) else manager.notify(live.tag, 0, ongoing(live)) }
     *
     * @return null for any other message, and for a state that is older than the newest one or arrives after the end
     */
    fun liveState(data: Map<String, String>): LiveState? = lock.withLock {
        val live = LiveState.read(data) ?: return null
        val times = JSONObject(store.get("live") ?: "{}")
        // Times have the same form, so their order is that of the texts.
        if (live.time != null && live.time < times.optString(live.tag)) return null
        times.put(live.tag, live.time ?: "")
        val newest = times.keys().asSequence().toList().sortedByDescending { times.optString(it) }.take(100)
        store.put("live", JSONObject(newest.associateWith { times.optString(it) }).toString())
        live
    }

    // Receipts

    private val outbox = ReentrantLock()

    /** Reports that the user opened a notification; also marks it as read. Without a connection it is sent later. */
    fun opened(notification: String) = report(notification, "opened")

    /** Reports that the user dismissed a notification. Without a connection it is sent later. */
    fun dismissed(notification: String) = report(notification, "dismissed")

    private fun report(notification: String, what: String) {
        outbox.withLock {
            val receipt = JSONObject().put("id", notification).put("what", what)
            val others = receipts().filter { it.toString() != receipt.toString() }
            store.put("receipts", JSONArray((others + receipt).takeLast(500)).toString())
        }
        flushReceipts()
    }

    private fun receipts(): List<JSONObject> = store.get("receipts")?.let { JSONArray(it).objects() } ?: emptyList()

    private fun flushReceipts() = outbox.withLock {
        val batch = receipts()
        if (batch.isEmpty()) return
        try {
            call("POST", "$rules/v1/receipts", JSONObject().put("receipts", JSONArray(batch)))
        } catch (error: HeliographRefused) {
            // Of other refusals, the server never takes these receipts.
            if (error.status == 401 || error.status == 403) return
        } catch (error: IOException) {
            return
        }
        store.put("receipts", null)
    }

    // Presence

    private val timer = Executors.newSingleThreadScheduledExecutor { Thread(it, "heliograph").apply { isDaemon = true } }
    private var renewal: ScheduledFuture<*>? = null

    /**
     * Reports that the app is open, and the thread on the screen, and renews the report every 30 s until [disappear].
     * Call it in `onStart` of the process and when the thread changes.
     */
    @Synchronized fun appear(viewing: String? = null) {
        stopRenewal()
        val body = JSONObject().put("viewing", viewing ?: JSONObject.NULL).put("for", 45)
        renewal = timer.scheduleWithFixedDelay({
            // A repetition that throws ends all later ones.
            try { synchronized(this) { if (renewal?.isCancelled == false) put(body) } } catch (error: IOException) { }
        }, 30, 30, TimeUnit.SECONDS)
        put(body)
    }

    /** Reports that the app is closed. Without it, the last report expires after 45 s. */
    @Synchronized fun disappear() {
        stopRenewal()
        repeatedly(3) { call("DELETE", presenceUrl()) }
    }

    private fun put(body: JSONObject) { repeatedly(2) { call("PUT", presenceUrl(), body) } }

    private fun presenceUrl() = "$rules/v1/presence/${encode(installation)}"

    @Synchronized private fun stopRenewal() { renewal?.cancel(false) }

    // Inbox

    /**
     * A page of the inbox, latest first.
     *
     * @param before the `next` of the previous page
     * @param limit from 1 to 200
     */
    fun inbox(before: String? = null, limit: Int = 50, unread: Boolean = false, thread: String? = null): InboxPage {
        var query = "limit=$limit"
        if (before != null) query += "&before=${encode(before)}"
        if (unread) query += "&unread=true"
        if (thread != null) query += "&thread=${encode(thread)}"
        val page = get("/v1/inbox?$query")
        return InboxPage(page.getJSONArray("items").objects().map { InboxItem(it) }, page.text("next"), page.getInt("unread"))
    }

    /** The number of unread items. */
    fun unreadCount(): Int = get("/v1/inbox/unread").getInt("unread")

    /** One item. Throws [HeliographRefused] with status 404 if the inbox does not have it. */
    fun inboxItem(id: String) = InboxItem(get("/v1/inbox/${encode(id)}"))

    /** Deletes an item. */
    fun deleteInboxItem(id: String) { repeatedly(3) { call("DELETE", "$rules/v1/inbox/${encode(id)}") } }

    /** Marks items as read, on all devices of the user. Returns the number of unread items left. */
    fun markRead(ids: List<String>): Int = markRead(JSONObject().put("ids", JSONArray(ids)))

    /** Marks all items of a thread as read. Returns the number of unread items left. */
    fun markThreadRead(thread: String): Int = markRead(JSONObject().put("thread", thread))

    /** Marks all items as read. Returns the number of unread items left. */
    fun markAllRead(): Int = markRead(JSONObject().put("all", true))

    private fun markRead(selection: JSONObject): Int =
        JSONObject(repeatedly(3) { call("POST", "$rules/v1/inbox/read", selection) }).getInt("unread")

    // Preferences

    /** The user's choices (`chosen`), and all options with their effective values. */
    fun preferences(): JSONObject = get("/v1/preferences")

    /**
     * Changes choices with a merge patch (RFC 7396): absent members stay, and `JSONObject.NULL` resets a choice.
     *
     * @return the new preferences
     */
    fun changePreferences(patch: JSONObject): JSONObject =
        JSONObject(repeatedly(3) { call("PATCH", "$rules/v1/preferences", patch) })

    /** Switches pushes and banners of a type on or off; null resets the choice. */
    fun setType(type: String, on: Boolean?): JSONObject =
        changePreferences(JSONObject().put("types", JSONObject().put(type, on ?: JSONObject.NULL)))

    /** Mutes a thread or a group, by the name that the app's rules define. */
    fun mute(name: String): JSONObject =
        changePreferences(JSONObject().put("mutes", JSONObject().put(name, JSONObject().put("muted", true))))

    /** Removes a mute. */
    fun unmute(name: String): JSONObject =
        changePreferences(JSONObject().put("mutes", JSONObject().put(name, JSONObject.NULL)))

    // Test push

    /**
     * Sends a test push to the user's own devices, and returns the providers' answers. For a screen “Is it working?”.
     *
     * A user may send one in 30 s, and five in an hour; another throws [HeliographUnavailable] with status 429.
     *
     * @param wait the longest wait for the answers, from 0 to 30 s
     */
    fun sendTestPush(wait: Int = 10): TestPush {
        val address = checkNotNull(events) { "the client has no address of events-api" }
        return TestPush(JSONObject(call("POST", "$address/v1/test-pushes?wait=${wait}s", timeout = 60_000)))
    }

    // Live stream

    /**
     * New items of the inbox, live, on a thread of its own. Reconnects with the id of the last item, until it is closed
     * or the server refuses the user. Open it in `onStart`, and close it in `onStop`.
     */
    fun listen(listener: InboxListener): Closeable = InboxStream(listener)

    private inner class InboxStream(private val listener: InboxListener) : Closeable {
        @Volatile private var isClosed = false
        @Volatile private var connection: HttpURLConnection? = null
        private var lastId: String? = null
        private var lastContact = 0L
        private var retry = 2000L
        private var failures = 0

        private val reader = thread(isDaemon = true, name = "heliograph-inbox") { run() }

        override fun close() {
            isClosed = true
            reader.interrupt()
            // The thread may wait for data. Closing the connection may wait for the network too.
            thread(isDaemon = true) { connection?.disconnect() }
        }

        private fun run() {
            while (!isClosed) {
                var retryAfter: Long? = null
                try {
                    read()
                } catch (error: HeliographUnavailable) {
                    failures += 1
                    retryAfter = error.retryAfter
                } catch (error: HeliographRefused) {
                    if (error.status != 400 || lastId == null) {
                        if (!isClosed) listener.failed(error)
                        return
                    }
                    // The server does not know the id, for example after its database was restored.
                    lastId = null
                } catch (error: IOException) {
                    failures += 1
                }
                try {
                    if (!isClosed) Thread.sleep(pause(failures + 1, retry, retryAfter))
                } catch (error: InterruptedException) {
                    return
                }
            }
        }

        private fun read() {
            // The server remembers an hour.
            if (System.currentTimeMillis() - lastContact > 3_300_000) lastId = null
            val headers = mutableMapOf("Accept" to "text/event-stream")
            lastId?.let { headers["Last-Event-ID"] = it }
            // The server sends a comment every 15 s.
            val opened = open("GET", "$rules/v1/inbox/stream", null, headers, 60_000)
            connection = opened
            try {
                check(opened)
                listener.connected(lastId != null)
                val lines = opened.inputStream.bufferedReader()
                var id = lastId
                var name = ""
                val data = StringBuilder()
                while (!isClosed) {
                    val line = lines.readLine() ?: return
                    failures = 0
                    lastContact = System.currentTimeMillis()
                    val value = line.substringAfter(':', "").removePrefix(" ")
                    when (line.substringBefore(':')) {
                        "id" -> id = value
                        "event" -> name = value
                        "data" -> data.append(value).append('\n')
                        "retry" -> value.toLongOrNull()?.let { retry = it }
                    }
                    if (line != "") continue
                    if (name == "item") listener.item(InboxItem(JSONObject(data.toString())))
                    if (name == "removed") listener.removed(JSONObject(data.toString()).getString("id"))
                    lastId = id
                    name = ""
                    data.setLength(0)
                }
            } finally {
                opened.disconnect()
            }
        }
    }

    // Requests

    private fun get(path: String) = JSONObject(repeatedly(3) { call("GET", rules + path) })

    /** Repeats a request after [HeliographUnavailable]. Every request of the APIs may be repeated. */
    private fun repeatedly(attempts: Int, base: Long = 500, request: () -> String): String {
        var attempt = 0
        while (true) {
            try {
                return request()
            } catch (error: HeliographUnavailable) {
                attempt += 1
                if (attempt >= attempts) throw error
                Thread.sleep(pause(attempt, base, error.retryAfter))
            }
        }
        @Suppress("UNREACHABLE_CODE") error("the loop returns")
    }

    /** Doubled each time, with a random part, so that devices do not return together. In milliseconds. */
    private fun pause(attempt: Int, base: Long, retryAfter: Long?): Long {
        val pause = minOf(60_000L, base shl minOf(attempt - 1, 10))
        return minOf(retryAfter ?: 0, 3_600_000) + pause / 2 + (random.nextDouble() * pause / 2).toLong()
    }

    /** Sends one request and returns the body of a successful response. */
    private fun call(method: String, url: String, body: JSONObject? = null, timeout: Int = 30_000): String {
        try {
            val connection = open(method, url, body, emptyMap(), timeout)
            try {
                check(connection)
                return connection.inputStream.text()
            } finally {
                connection.disconnect()
            }
        } catch (error: HeliographRefused) {
            throw error
        } catch (error: HeliographUnavailable) {
            throw error
        } catch (error: IOException) {
            throw HeliographUnavailable(null, error.message ?: "no answer", null)
        }
    }

    /** Sends a request, and once more with a new bearer token after 401. Follows no redirect. */
    private fun open(
        method: String, url: String, body: JSONObject?, headers: Map<String, String>, timeout: Int
    ): HttpURLConnection {
        for (isRefused in listOf(false, true)) {
            val connection = http.open(url)
            http.setMethod(connection, method)
            connection.instanceFollowRedirects = false
            connection.useCaches = false
            connection.connectTimeout = 15_000
            connection.readTimeout = timeout
            connection.setRequestProperty("Authorization", "Bearer " + bearer(isRefused))
            headers.forEach { (name, value) -> connection.setRequestProperty(name, value) }
            if (body != null) {
                connection.doOutput = true
                connection.setRequestProperty("Content-Type", "application/json")
                connection.outputStream.use { it.write(body.toString().toByteArray()) }
            }
            if (connection.responseCode != 401 || isRefused) return connection
            connection.disconnect()
        }
        throw IllegalStateException("the second response is returned")
    }

    /** Throws the error of a refused request. Problems (RFC 9457) have the cause in `detail`. */
    private fun check(connection: HttpURLConnection) {
        val status = connection.responseCode
        if (status in 200..299) return
        val text = connection.errorStream?.text() ?: ""
        val problem = runCatching { JSONObject(text) }.getOrNull()
        val detail = problem?.text("detail") ?: problem?.text("error") ?: "no detail"
        if (status != 408 && status != 429 && status < 500) throw HeliographRefused(status, detail)
        val retryAfter = connection.getHeaderField("Retry-After")?.toLongOrNull()
        throw HeliographUnavailable(status, detail, retryAfter?.times(1000))
    }

    private fun encode(text: String) = URLEncoder.encode(text, "UTF-8").replace("+", "%20")

    private fun InputStream.text(): String {
        val output = ByteArrayOutputStream()
        use { it.copyTo(output) }
        return output.toString("UTF-8")
    }
}

/** The server refused a request. A repetition without a correction is refused too. [message] has the cause. */
class HeliographRefused(val status: Int, detail: String) : IOException("status $status: $detail")

/**
 * The server is unavailable, or the user exceeds a limit. Try again later. [status] is null without an answer;
 * [retryAfter] is in milliseconds.
 */
class HeliographUnavailable(val status: Int?, detail: String, val retryAfter: Long?) :
    IOException(if (status == null) detail else "status $status: $detail")

/** Gets new items of the inbox, on the stream's thread. */
interface InboxListener {
    /** The stream is open. If it is not [isComplete], items may have been missed: read the inbox again. */
    fun connected(isComplete: Boolean)

    /** A new item, for a banner and for the list. */
    fun item(item: InboxItem)

    /** An item was taken back or deleted: remove it from the list. */
    fun removed(id: String) {}

    /** The server refused the user. The stream has ended. */
    fun failed(error: HeliographRefused)
}

/**
 * Keeps a few texts across restarts, private to the app. On Android:
 *
 *     class PreferencesStore(context: Context) : HeliographStore {
 *         private val values = context.getSharedPreferences("heliograph", Context.MODE_PRIVATE)
 *         override fun get(key: String) = values.getString(key, null)
 *         override fun put(key: String, value: String?) = values.edit().putString(key, value).apply()
 *     }
 *
 * Exclude the file from backups: a restored installation id belongs to the former device.
 */
interface HeliographStore {
    /** The last value of a key; null if there is none. */
    fun get(key: String): String?

    /** Replaces the value of a key; null removes it. */
    fun put(key: String, value: String?)
}

/** Opens connections. A subclass may set a proxy or pin certificates. */
open class HeliographHttp {
    /** A connection that is not open yet. */
    open fun open(url: String): HttpURLConnection = URL(url).openConnection() as HttpURLConnection

    /** Sets the method. Android supports all that the client uses; the JDK has no `PATCH`. */
    open fun setMethod(connection: HttpURLConnection, method: String) { connection.requestMethod = method }
}

/** A device token of this installation: [kind] is `fcm-token`, `fid` or `fcm-web`. */
data class DeviceToken(val kind: String, val token: String, val platform: String? = null) {
    internal fun json(): JSONObject = JSONObject().put("kind", kind).put("token", token).putOpt("platform", platform)

    /** A new registration token replaces the former one. */
    internal fun replaces(other: JSONObject) = other.optString("kind") == kind

    companion object {
        /** The registration token that FCM gives to an Android app. */
        fun fcm(token: String) = DeviceToken("fcm-token", token, "android")
    }
}

/** Properties that the registry stores beside the tokens, such as `de-CH`, `Europe/Zurich` and `4.2`. */
data class InstallationDetails(
    val locale: String? = null, val timeZone: String? = null, val appVersion: String? = null
) {
    internal fun json(): JSONObject =
        JSONObject().putOpt("locale", locale).putOpt("time_zone", timeZone).putOpt("app_version", appVersion)
}

/** A page of the inbox. [next] is the `before` of the next page; null on the last page. */
class InboxPage(val items: List<InboxItem>, val next: String?, val unread: Int)

/** An item of the inbox. Times are RFC 3339; [data] is the app's own data. */
class InboxItem(json: JSONObject) {
    val id: String = json.getString("id")
    val at: String = json.getString("at")
    val readAt: String? = json.text("read_at")
    val rule: String = json.getString("rule")
    val type: String? = json.text("type")
    val title: String? = json.text("title")
    val subtitle: String? = json.text("subtitle")
    val body: String? = json.text("body")
    val image: String? = json.text("image")
    val deepLink: String? = json.text("deep_link")
    val category: String? = json.text("category")
    val thread: String? = json.text("thread")
    val data: JSONObject = json.optJSONObject("data") ?: JSONObject()
}

/**
 * What became of a test push. [decision] is `push` if it was sent; [reason] says why, such as `wanted`, `channel-off` or
 * `no-device`. [complete] tells whether all answers are here.
 */
class TestPush(json: JSONObject) {
    val decision: String? = json.text("decision")
    val reason: String? = json.text("reason")
    val devices: List<Device> = json.getJSONArray("devices").objects().map { Device(it) }
    val complete: Boolean = json.getBoolean("complete")

    /** Whether a provider accepted the push for a device of the user. */
    val isAccepted: Boolean get() = devices.any { it.result == "accepted" }

    /**
     * A provider's answer for one device. [result] is `accepted` or the kind of failure, such as `unregistered` for a token
     * that is no longer valid; [reason] is the provider's.
     */
    class Device(json: JSONObject) {
        val device: String = json.getString("device")
        val provider: String = json.getString("provider")
        val result: String = json.getString("result")
        val reason: String? = json.text("reason")
    }
}

/**
 * A state of a thing in progress ([Heliograph.liveState]). [name] and [item] say which thing: the entry of the rule file and
 * its item. [state] has the values that the entry defines. [time] is the time of the event.
 */
class LiveState(
    val name: String, val item: String, val hasEnded: Boolean, val time: String?, val state: JSONObject,
    val title: String?, val body: String?
) {
    /** The tag of the notification. */
    val tag: String get() = "live/$name/$item"

    companion object {
        internal fun read(data: Map<String, String>): LiveState? {
            val name = data["live"] ?: return null
            val state = runCatching { JSONObject(data["live_state"] ?: "{}") }.getOrDefault(JSONObject())
            return LiveState(
                name, data["live_item"] ?: "", data["live_event"] == "end", data["live_time"], state,
                data["live_title"], data["live_body"])
        }
    }
}

private fun JSONObject.text(name: String): String? = if (isNull(name)) null else optString(name)

private fun JSONArray.objects(): List<JSONObject> = (0 until length()).map { getJSONObject(it) }
