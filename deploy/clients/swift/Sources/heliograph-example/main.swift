// A phone on the command line, for trying the client and for the system test. It reads one command a line and prints one
// line for each. README.md lists the commands.
import Foundation
import HeliographClient

let environment = ProcessInfo.processInfo.environment

func setting(_ name: String) -> String {
    guard let value = environment[name], !value.isEmpty else {
        FileHandle.standardError.write(Data("\(name) is not set\n".utf8))
        exit(2)
    }
    return value
}

func address(_ name: String) -> URL {
    guard let url = URL(string: setting(name)) else {
        FileHandle.standardError.write(Data("\(name) is not a URL\n".utf8))
        exit(2)
    }
    return url
}

/// Prints a line at once, also into a pipe.
@Sendable func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

let bearer = setting("HELIOGRAPH_BEARER")
let client = HeliographClient(
    configuration: .init(
        registry: address("REGISTRY_URL"), rules: address("RULES_URL"),
        events: environment["EVENTS_API_URL"].flatMap(URL.init(string:))),
    store: FileStore(folder: URL(fileURLWithPath: setting("HELIOGRAPH_STATE"))), bearer: { _ in bearer })

@Sendable func listen() async {
    do {
        for try await event in client.inboxEvents() {
            switch event {
            case .connected: say("connected")
            case .removed(let id): say("removed \(id.uuidString.lowercased())")
            case .item(let item): say("item \(item.id.uuidString.lowercased()) \(item.title ?? "")")
            }
        }
    } catch { say("error \(error)") }
}

func answer(_ command: String, _ argument: String) async throws -> String {
    switch command {
    case "sign-in": return try await client.signIn(as: argument) ? "registered" : "unchanged"
    case "token":
        let token = DeviceToken(kind: "alert", token: argument, environment: "production")
        return try await client.setToken(token) ? "registered" : "unchanged"
    case "sign-out":
        try await client.signOut()
        return "signed-out"
    case "appear":
        try await client.appear(viewing: argument.isEmpty ? nil : argument)
        return "present"
    case "disappear":
        try await client.disappear()
        return "absent"
    case "inbox":
        let page = try await client.inbox()
        return "inbox \(page.items.count) \(page.unread)"
    case "read":
        let unread = try await client.markRead(UUID(uuidString: argument).map { .ids([$0]) } ?? .all).unread
        return "unread \(unread)"
    case "opened":
        guard let id = UUID(uuidString: argument) else { return "error not an id" }
        await client.opened(id)
        return "reported"
    case "mute":
        let chosen = try await client.mute(argument).chosen
        return "muted \(chosen["mutes"]?[argument]?["muted"] == true)"
    case "type":
        let settings = try await client.setType(argument, on: false)
        return "type \(settings.types[argument]?.on == false ? "off" : "on")"
    case "test":
        let push = try await client.sendTestPush(wait: 30)
        return "test \(push.reason ?? "") \(push.devices.map(\.result).sorted().joined(separator: " "))"
    default: return "error unknown command"
    }
}

var listener: Task<Void, Never>?
while let line = readLine() {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    guard let command = words.first else { continue }
    if command == "listen" {
        listener = Task.detached { await listen() }
        continue
    }
    do { say(try await answer(command, words.count > 1 ? words[1] : "")) } catch { say("error \(error)") }
}
listener?.cancel()
