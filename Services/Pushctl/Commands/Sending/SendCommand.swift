import ArgumentParser
import Foundation
import PushProtocol
import ServiceKit

/// `pushctl send`: sends a notification that the operator words (``DirectNotification``).
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a notification to users, a group, a topic, a tag or everyone, without a rule.",
        discussion: """
            Publishes an event like an upstream service and waits for the broker's confirm. Users' settings, caps, quiet
            hours and inboxes apply to users and groups. Texts are literal. deploy/operations/direct-send.md describes
            the members of --file.
            """)
    @Option(help: "The app that sends.") var app: String
    @OptionGroup(title: "Recipients") var recipients: RecipientOptions
    @OptionGroup(title: "Content") var content: ContentOptions
    @OptionGroup(title: "Delivery") var delivery: DeliveryOptions
    @Option(help: "A file with the notification as JSON, or - for standard input. Options replace its members.")
    var file: String?
    @OptionGroup var identity: EventIdentity
    @OptionGroup var waiting: WaitOption
    @OptionGroup var apps: AppsOption
    @OptionGroup var output: OutputOption

    func run() async throws {
        let app = try apps.app(app).id
        let data = try data()
        do { _ = try DirectNotification(data) } catch { throw CommandError("the notification: \(error)", .usage) }
        let event = try UpstreamEvent(
            type: DirectNotification.eventType, data: data, identity: identity, app: app)
        try await waiting.publish(event, output)
    }

    /// The notification: the file's members, replaced by the options.
    func data() throws -> JSONValue {
        var members: [String: JSONValue] = [:]
        if let file {
            guard let object = try PublishCommand.json(file).object else {
                throw CommandError("\(PublishCommand.name(file)): expected a JSON object", .input)
            }
            members = object
        }
        members.merge(recipients.members) { $1 }
        members.merge(delivery.members) { $1 }
        let added = try content.members
        if !added.isEmpty || members["content"] == nil {
            members["content"] = (members["content"] ?? [:]).merging(.object(added))
        }
        return .object(members)
    }
}

struct RecipientOptions: ParsableArguments {
    @Option(name: .customLong("user"), help: "A user. Repeat it for several.") var users: [String] = []
    @Option(help: "A group that the app's rule file maintains.") var group: String?
    @Option(help: "A topic that users subscribe to. Users' settings do not apply.") var topic: String?
    @Option(help: "A tag of users, which serves as a segment. Users' settings do not apply.") var tag: String?
    @Flag(help: "Every user with a device. Users' settings do not apply.") var everyone = false

    var members: [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        if !users.isEmpty { members["users"] = .array(users.map(JSONValue.string)) }
        members["group"] = group.map(JSONValue.string)
        members["topic"] = topic.map(JSONValue.string)
        members["tag"] = tag.map(JSONValue.string)
        if everyone { members["everyone"] = true }
        return members
    }
}

/// The options of `pushctl send` with the content.
struct ContentOptions: ParsableArguments {
    @Option var title: String?
    @Option var subtitle: String?
    @Option var body: String?
    @Option(help: "The number on the app's icon.") var badge: Int?
    @Option(help: "A sound file of the app, or default.") var sound: String?
    @Option(help: "An https URL.") var image: String?
    @Option(help: "The URL that a tap opens.") var link: String?
    @Option(help: "The app's own members, a JSON object.") var data: String?

    var members: [String: JSONValue] {
        get throws {
            let texts = [
                "title": title, "subtitle": subtitle, "body": body, "sound": sound, "image": image, "link": link,
            ]
            var members = texts.compactMapValues { $0.map(JSONValue.string) }
            members["badge"] = badge.map { .int(Int64($0)) }
            if let data {
                guard let value = try? WireCoding.decode(JSONValue.self, from: Array(data.utf8)) else {
                    throw CommandError("--data is not JSON", .usage)
                }
                members["data"] = value
            }
            return members
        }
    }
}

struct DeliveryOptions: ParsableArguments {
    @Option(help: "A preference type of the app's rule file.") var type: String?
    @Option(help: "interactive or bulk.") var lane: String?
    @Option(help: "The time to send it, such as 2026-03-31T09:00:00Z.") var at: String?
    @Option(help: "The time from which it is no longer sent.") var expires: String?
    @Option(help: "The lifetime in seconds.") var ttl: Int?
    @Option(help: "A later notification with the same key replaces this one on screen.") var collapse: String?
    @Flag(help: "Wake the app and show nothing.") var silent = false
    @Flag(help: "Add nothing to inboxes.") var pushOnly = false

    var members: [String: JSONValue] {
        let texts = ["type": type, "lane": lane, "at": at, "expires": expires, "collapse": collapse]
        var members = texts.compactMapValues { $0.map(JSONValue.string) }
        members["ttl"] = ttl.map { .int(Int64($0)) }
        if silent { members["silent"] = true }
        if pushOnly { members["pushOnly"] = true }
        return members
    }
}
