// A phone on the command line: drives Heliograph.kt on a JVM with the commands of the Swift example.

import heliograph.DeviceToken
import heliograph.Heliograph
import heliograph.HeliographHttp
import heliograph.HeliographRefused
import heliograph.HeliographStore
import heliograph.InboxItem
import heliograph.InboxListener
import java.io.File
import java.io.IOException
import java.net.HttpURLConnection

/** In place of Android's SharedPreferences. */
private class FolderStore(private val folder: File) : HeliographStore {
    override fun get(key: String): String? = File(folder, key).takeIf { it.exists() }?.readText()

    override fun put(key: String, value: String?) {
        folder.mkdirs()
        if (value == null) File(folder, key).delete() else File(folder, key).writeText(value)
    }
}

/** Android's HttpURLConnection takes PATCH. That of the JDK needs the field. */
private class JVMHttp : HeliographHttp() {
    override fun setMethod(connection: HttpURLConnection, method: String) {
        if (method != "PATCH") return super.setMethod(connection, method)
        val field = HttpURLConnection::class.java.getDeclaredField("method")
        field.isAccessible = true
        field.set(connection, method)
    }
}

@Synchronized private fun say(line: String) {
    println(line)
    System.out.flush()
}

private val listener = object : InboxListener {
    override fun connected(isComplete: Boolean) = say("connected")
    override fun item(item: InboxItem) = say("item ${item.id} ${item.title}")
    override fun removed(id: String) = say("removed $id")
    override fun failed(error: HeliographRefused) = say("error ${error.message}")
}

private fun answer(client: Heliograph, command: String, argument: String): String? = when (command) {
    "sign-in" -> if (client.signIn(argument)) "registered" else "unchanged"
    "token" -> if (client.setToken(DeviceToken.fcm(argument))) "registered" else "unchanged"
    "sign-out" -> { client.signOut(); "signed-out" }
    "appear" -> { client.appear(if (argument == "") null else argument); "present" }
    "disappear" -> { client.disappear(); "absent" }
    "inbox" -> client.inbox().let { "inbox ${it.items.size} ${it.unread}" }
    "read" -> "unread " + if (argument == "") client.markAllRead() else client.markRead(listOf(argument))
    "opened" -> { client.opened(argument); "reported" }
    "mute" -> client.mute(argument).getJSONObject("chosen").getJSONObject("mutes").getJSONObject(argument)
        .let { "muted ${it.getBoolean("muted")}" }
    "type" -> client.setType(argument, false).getJSONObject("types").getJSONObject(argument)
        .let { "type " + if (it.getBoolean("on")) "on" else "off" }
    "test" -> client.sendTestPush(30).let { push ->
        "test ${push.reason ?: ""} ${push.devices.map { it.result }.sorted().joinToString(" ")}"
    }
    "cleared" -> "cleared " + Heliograph.clearedNotifications(mapOf("heliograph_clear" to argument)).joinToString(" ")
    "listen" -> { client.listen(listener); null }
    else -> "error unknown command"
}

fun main() {
    val environment = System.getenv()
    val client = Heliograph(
        environment.getValue("REGISTRY_URL"), environment.getValue("RULES_URL"),
        FolderStore(File(environment.getValue("HELIOGRAPH_STATE"))), JVMHttp(), environment["EVENTS_API_URL"]
    ) { environment.getValue("HELIOGRAPH_BEARER") }
    while (true) {
        val words = (readLine() ?: break).split(" ", limit = 2)
        try {
            answer(client, words[0], words.getOrElse(1) { "" })?.let { say(it) }
        } catch (error: IOException) {
            say("error ${error.message}")
        }
    }
    System.exit(0)
}
