package import PushProtocol

/// One rule: **when** an event matches, **to** these users, **say** this text, **how** to deliver it.
package struct Rule: Hashable, Sendable {
    /// Unique in its file. Ids of notifications include it, so a renamed rule is a new rule.
    package var name: String
    var when: Condition
    /// The recipients: all users that a selector finds and all members of the groups, each once.
    package var to: [Selector]
    package var groups: [GroupSelector] = []
    /// Replaces users and groups.
    package var audience: AudienceSelector?
    package var audienceOptions = AudienceOptions()
    /// Set if rules decide about each user of the audience.
    package var segment: SegmentSelector?
    var following: Following?
    package var say: MessageTemplate
    package var how: DeliveryOptions
    package var policy = Policy()
    /// Whether its texts use the object that names the recipient.
    package var isPersonal = false
    /// Set for a rule of an entry under `live`.
    var surface: Surface?
    /// Set for a rule that uses the broadcast channels of its live surface.
    package var channels: SurfaceChannels<Template>?
    package var variant: Variant?
    /// For the end of a surface by time: the time from the event to the end. Its state is as new as that.
    var surfaceDelay: Duration = .zero

    package struct Condition: Hashable, Sendable {
        /// CloudEvents types, at least one.
        package var events: [String]
        package var data: Pattern?
        /// A pattern for the attributes `source` and `subject`.
        var attributes: Pattern?
    }

    /// Users that the event itself names.
    package struct Selector: Hashable, Sendable {
        /// The path of a user id, a list of user ids, or an object or list of objects that contain one.
        package var users: String
        /// For objects: the path of the user id.
        package var id: String?
        /// For objects: selects the objects that match.
        var matching: Pattern?
        /// For objects: the path of the user's own badge.
        package var badge: String?
        /// Paths of user ids to exclude.
        package var except: [String] = []
    }

    /// The texts of a notification. Members are named as in ``Content``.
    package struct MessageTemplate: Hashable, Sendable {
        package var title: Template?
        package var subtitle: Template?
        package var body: Template?
        package var deepLink: Template?
        package var image: Template?
        package var data: [DataTemplate.Member]?
        /// Replaces the text in the push if ``DeliveryOptions/privacy`` is not `full`; has no variables.
        package var preview: Preview?
        /// The payload beside `aps`, for kinds without other content.
        var payload: [DataTemplate.Member]?
        var activity: Activity?
        /// The translations. A member that a translation lacks is taken from this template.
        package var translations: [Language: MessageTemplate] = [:]

        /// The text that a locked screen may show.
        package struct Preview: Hashable, Sendable {
            package var title: Template?
            package var body: Template?
        }
    }

    package struct DeliveryOptions: Hashable, Sendable {
        /// The content that is sent to the provider. The inbox always has the full content.
        enum Privacy: String, Hashable, Sendable, CaseIterable {
            case full
            /// The preview, the data and the deep link.
            case generic
            /// The preview and the notification's id.
            case idOnly = "id-only"
        }
        package var kind: Kind = .alert
        var privacy: Privacy = .full
        package var lane: Lane = .interactive
        package var sound: String?
        package var badge: DataTemplate?
        /// Whether the badge is the user's number of unread inbox items.
        package var countsUnread = false
        package var category: String?
        package var thread: Template?
        package var interruptionLevel: InterruptionLevel?
        /// Starts when the event arrives, by our clock. An upstream can set an exact `expirytime`.
        package var expiresAfter: Duration?
        /// The policy for a lost provider response; `nil`: at least once.
        package var delivery: DeliveryPolicy?
        package var collapseKey: Template?
        /// Selects among a user's tokens of one kind, such as the id of one Live Activity.
        package var scope: Template?
        package var devices: DeviceTemplate?
        package var apns: APNsTemplate?
        package var fcm: FCMTemplate?
        package var web: WebPushTemplate?
    }
}

extension Rule.Condition {
    /// Whether an event matches. The event's type must be one of ``events``.
    package func holds(_ event: DomainEvent) -> Bool {
        (data?.matches(event.data) ?? true)
            && (attributes?.matches(.object(Rule.Condition.attributes(of: event))) ?? true)
    }

    private static func attributes(of event: DomainEvent) -> [String: JSONValue] {
        var attributes: [String: JSONValue] = ["source": .string(event.source)]
        attributes["subject"] = event.subject.map(JSONValue.string)
        return attributes
    }
}
