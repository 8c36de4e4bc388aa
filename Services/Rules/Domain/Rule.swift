import PushProtocol

/// One rule: **when** an event matches, **to** these users, **say** this text, **how** to deliver it.
struct Rule: Hashable, Sendable {
    /// Unique in its file. Ids of notifications include it, so a renamed rule is a new rule.
    var name: String
    var when: Condition
    /// The recipients: all users that a selector finds and all members of the groups, each once.
    var to: [Selector]
    var groups: [GroupSelector] = []
    /// Replaces users and groups.
    var audience: AudienceSelector?
    var following: Following?
    var say: MessageTemplate
    var how: DeliveryOptions
    var policy = Policy()

    /// The events that a rule matches.
    struct Condition: Hashable, Sendable {
        /// CloudEvents types, at least one.
        var events: [String]
        /// A pattern for the event's data.
        var data: Pattern?
        /// A pattern for the attributes `source` and `subject`.
        var attributes: Pattern?
    }

    /// Users that the event itself names.
    struct Selector: Hashable, Sendable {
        /// The path of a user id, a list of user ids, or an object or list of objects that contain one.
        var users: String
        /// For objects: the path of the user id.
        var id: String?
        /// For objects: selects the objects that match.
        var matching: Pattern?
        /// For objects: the path of the user's own badge.
        var badge: String?
        /// Paths of user ids to exclude.
        var except: [String] = []
    }

    /// The texts of a notification. Members are named as in ``Content``.
    struct MessageTemplate: Hashable, Sendable {
        var title: Template?
        var subtitle: Template?
        var body: Template?
        var deepLink: Template?
        var image: Template?
        var data: [DataTemplate.Member]?
        /// Replaces the text in the push if ``DeliveryOptions/privacy`` is not `full`; has no variables.
        var preview: Preview?
        /// The payload beside `aps`, for kinds without other content.
        var payload: [DataTemplate.Member]?
        var activity: Activity?
        /// The translations. A member that a translation lacks is taken from this template.
        var translations: [Language: MessageTemplate] = [:]

        /// The text that a locked screen may show.
        struct Preview: Hashable, Sendable {
            var title: Template?
            var body: Template?
        }
    }

    /// The delivery settings of a rule.
    struct DeliveryOptions: Hashable, Sendable {
        /// The content that is sent to the provider. The inbox always has the full content.
        enum Privacy: String, Hashable, Sendable, CaseIterable {
            case full
            /// The preview, the data and the deep link.
            case generic
            /// The preview and the notification's id.
            case idOnly = "id-only"
        }
        var kind: Kind = .alert
        var privacy: Privacy = .full
        var lane: Lane = .interactive
        var sound: String?
        var badge: DataTemplate?
        /// Whether the badge is the user's number of unread inbox items.
        var countsUnread = false
        var category: String?
        var thread: Template?
        var interruptionLevel: InterruptionLevel?
        /// Starts when the event arrives, by our clock. An upstream can set an exact `expirytime`.
        var expiresAfter: Duration?
        /// The policy for a lost provider response; `nil`: at least once.
        var delivery: DeliveryPolicy?
        var collapseKey: Template?
        /// Selects among a user's tokens of one kind, such as the id of one Live Activity.
        var scope: Template?
        var apns: APNsOverride?
        var fcm: FCMOverride?
    }
}

extension Rule.Condition {
    /// Whether an event matches. The event's type must be one of ``events``.
    func holds(_ event: DomainEvent) -> Bool {
        (data?.matches(event.data) ?? true)
            && (attributes?.matches(.object(Rule.Condition.attributes(of: event))) ?? true)
    }

    private static func attributes(of event: DomainEvent) -> [String: JSONValue] {
        var attributes: [String: JSONValue] = ["source": .string(event.source)]
        attributes["subject"] = event.subject.map(JSONValue.string)
        return attributes
    }
}
