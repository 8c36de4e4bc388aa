package import FoundationEssentials

/// Some users of a segment, which the registry has resolved for a rule. A domain event of the rule's app: exchange
/// `events`, routing key `<app>.heliograph.segment.page`.
///
/// The page has the id of the event that addressed the segment, and a source of its own. So an operator finds and
/// revokes all pages by the id.
package struct SegmentPage: Hashable, Sendable {
    package static let eventType = "heliograph.segment.page"
    /// The maximum number of users in one page. A page is decided in one transaction.
    package static let maximumUsers = 200
    /// The maximum size of the event that addresses a segment, because every page contains it.
    package static let maximumEventSize = 64 * 1024
    /// The levels that a page nests the event's data.
    package static let nesting = 2

    /// The event that addressed the segment.
    package var event: DomainEvent
    package var rule: String
    /// Empty if no user matches the segment.
    package var users: [UserID]
    /// Identifies the page: the campaign, its range, step and part.
    package var source: String

    package init(event: DomainEvent, rule: String, users: [UserID], source: String) {
        self.event = event
        self.rule = rule
        self.users = users
        self.source = source
    }

    /// Returns the pages of the users that one step of a campaign has found.
    ///
    /// - Parameters:
    ///   - campaign: the campaign that resolves the segment.
    ///   - range: its range, and `step` the step there.
    package static func pages(
        of users: [UserID], for event: DomainEvent, by rule: String, campaign: UUID, range: Int, step: Int64
    ) -> [SegmentPage] {
        users.chunks(ofAtMost: maximumUsers).enumerated().map { part, users in
            SegmentPage(
                event: event, rule: rule, users: users,
                source: source(campaign: campaign, range: range, step: step, part: part))
        }
    }

    /// Returns the page without users, for a segment that no user matches.
    package static func nobody(for event: DomainEvent, by rule: String, campaign: UUID) -> SegmentPage {
        SegmentPage(
            event: event, rule: rule, users: [], source: source(campaign: campaign, range: -1, step: 0, part: 0))
    }

    private static func source(campaign: UUID, range: Int, step: Int64, part: Int) -> String {
        "/heliograph/segments/\(Hexadecimal.text(of: campaign))/\(range).\(step).\(part)"
    }

    /// The page as an event for the rules.
    package var domainEvent: DomainEvent {
        DomainEvent(
            app: event.app, id: event.id, source: source, type: Self.eventType, time: event.time,
            traceparent: event.traceparent,
            data: [
                "event": event.cloudEvent, "rule": .string(rule), "users": .array(users.map { .string($0.rawValue) }),
            ])
    }

    /// Reads the page from an event of the type ``eventType``.
    package init(_ page: DomainEvent) throws(WireError) {
        guard let cloudEvent = page.data["event"], let rule = page.data["rule"]?.string,
            let users = page.data["users"]?.array
        else { throw .missing(path: "event, rule or users") }
        event = try DomainEvent(cloudEvent: cloudEvent, of: page.app)
        self.rule = rule
        self.users = try users.map { value throws(WireError) in
            guard let user = value.string.flatMap(UserID.init(rawValue:)) else {
                throw .invalid(path: "users", problem: "expected user ids")
            }
            return user
        }
        guard self.users.count <= Self.maximumUsers else {
            throw .invalid(path: "users", problem: "expected at most \(Self.maximumUsers)")
        }
        source = page.source
    }
}
