import Foundation
import PushProtocol
import RuleEngine
import Testing

@testable import RuleLanguage
@testable import Rules

/// The shipped rule files.
enum Shipped {
    static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Services/Rules/RuleSets").path

    static func ruleSet(_ app: String) throws -> RuleSet {
        let ruleSets = try RuleDirectory.load(directory)
        return try #require(ruleSets.ruleSets[AppID(rawValue: app)!])
    }
}

/// An event with JSON data.
func event(
    _ type: String, app: String = "family-portal", id: String = "e-1", source: String = "/upstream",
    subject: String? = nil, expiresAt: Date? = nil, _ data: JSONValue
) -> DomainEvent {
    DomainEvent(
        app: AppID(rawValue: app)!, id: id, source: source, type: type, subject: subject, expiresAt: expiresAt,
        data: data)
}

func json(_ text: String) throws -> JSONValue { try WireCoding.decode(JSONValue.self, from: Array(text.utf8)) }

func user(_ id: String) -> UserID { UserID(rawValue: id)! }

extension NotificationDraft {
    var users: [String] { recipients.map(\.user.rawValue) }
    var rule: String { rendered.rule }
    var lane: Lane { rendered.lane }
    var content: Content { rendered.content }
    var preview: Content? { rendered.preview }
    var mutes: [String] { rendered.mutes }
    var scope: String? { rendered.scope }
    /// The messages to the named users, as if every decision were to push.
    var messages: [PushProtocol.Notification] { notifications(to: recipients, quietly: false) }
}

/// A rule file about the event `thing.happened`, whose example is `example` and whose only rule says `body`.
func ruleFile(
    example: String = #"{ name: Pat, users: [1, 2] }"#, when: String = "event: thing.happened",
    to: String = "{ users: users }", say: String = "body: Hello", how: String = "lane: interactive"
) -> String {
    """
    app: test
    events:
      thing.happened:
        examples:
          - \(example)
    rules:
      only:
        when:
          \(when)
        to: \(to)
        say:
          \(say)
        how:
          \(how)
    """
}

func parse(_ text: String) throws -> RuleSet { try RuleFile.parse(text, file: "test.yaml") }
