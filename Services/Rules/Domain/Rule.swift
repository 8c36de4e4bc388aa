import PushProtocol

/// One rule: **when** this happens, **to** these users, **say** this, and this is **how**.
struct Rule: Hashable, Sendable {
    /// Unique in its file; part of every notification's id, so renaming a rule makes it another.
    var name: String
    var when: Condition
    /// Whoever any of these names hears of it, once; and so do the members of these groups.
    var to: [Selector]
    var groups: [GroupSelector] = []
    /// Instead of them.
    var audience: AudienceSelector?
    var following: Following?
    var say: MessageTemplate
    var how: DeliveryOptions
    var policy = Policy()

    /// Which events it speaks about.
    struct Condition: Hashable, Sendable {
        /// CloudEvents types, at least one.
        var events: [String]
        /// On the event's data.
        var data: Pattern?
        /// On the attributes `source` and `subject`.
        var attributes: Pattern?
    }

    /// Users that the event itself names.
    struct Selector: Hashable, Sendable {
        /// The path of a user id, of a list of them, or of an object or list of objects that hold one.
        var users: String
        /// In objects: the path of the user id.
        var id: String?
        /// In objects: only those that match.
        var matching: Pattern?
        /// In objects: the path of the user's own badge.
        var badge: String?
        /// Paths of users who shall not hear of it.
        var except: [String] = []
    }

    /// The words. Members are named as in ``Content``.
    struct MessageTemplate: Hashable, Sendable {
        var title: Template?
        var subtitle: Template?
        var body: Template?
        var deepLink: Template?
        var image: Template?
        var data: [DataTemplate.Member]?
        /// What is pushed instead of it where ``DeliveryOptions/privacy`` is not full; without variables.
        var preview: Preview?
        /// What stands beside `aps`, for kinds that have nothing else.
        var payload: [DataTemplate.Member]?
        var activity: Activity?
        /// In other languages than the file's: what is absent in one of them is as it is here.
        var translations: [Language: MessageTemplate] = [:]

        /// What strangers may read on a locked screen.
        struct Preview: Hashable, Sendable {
            var title: Template?
            var body: Template?
        }
    }

    /// The manner of delivery.
    struct DeliveryOptions: Hashable, Sendable {
        /// What leaves the house. The inbox always has all of it.
        enum Privacy: String, Hashable, Sendable, CaseIterable {
            case full
            /// The preview, and what the app needs: data and link.
            case generic
            /// The preview and the notification's id.
            case idOnly = "id-only"
        }
        var kind: Kind = .alert
        var privacy: Privacy = .full
        var lane: Lane = .interactive
        var sound: String?
        var badge: DataTemplate?
        /// The badge is how much the person has not read in the inbox.
        var countsUnread = false
        var category: String?
        var thread: Template?
        var interruptionLevel: InterruptionLevel?
        /// Counted from when the event arrived: the upstream's clock is not ours, and one that knows better says
        /// `expirytime`.
        var expiresAfter: Duration?
        /// When a provider's answer is lost; absent: at least once.
        var delivery: DeliveryPolicy?
        var collapseKey: Template?
        /// Of what a person may have several tokens for, which is meant: the id of one Live Activity, say.
        var scope: Template?
        var apns: APNsOverride?
        var fcm: FCMOverride?
    }
}

extension Rule.Condition {
    /// Whether an event of one of ``events`` is meant.
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
