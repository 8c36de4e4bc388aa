import PushProtocol

/// What the checks of one push know and find out on their way down the table.
struct APNsReview {
    let push: APNsPush
    let connection: APNsConnection
    let apps: KnownApps
    let registrations: Registrations
    /// The environment of the port the push came to.
    let environment: ProviderEnvironment
    let now: Timestamp

    /// Known after the push-type check; `nil` when the header is absent.
    var type: APNsPushType?
    /// Known after the authorization check.
    var key: APNsKey?
    /// Known after the topic check.
    var topic: APNsTopic?
    /// Known after the body check.
    var payload: [String: JSONValue] = [:]
    /// Known after the token check: normalised.
    var token: String?

    init(
        _ push: APNsPush, connection: APNsConnection, apps: KnownApps, registrations: Registrations,
        environment: ProviderEnvironment, now: Timestamp
    ) {
        self.push = push
        self.connection = connection
        self.apps = apps
        self.registrations = registrations
        self.environment = environment
        self.now = now
    }

    /// The first refusal of the table, if any.
    mutating func refusal() -> APNsRefusal? {
        for check in APNsCheck.all {
            do throws(APNsRefusal) {
                try check.run(&self)
            } catch {
                return error
            }
        }
        return nil
    }
}

/// One thing APNs looks at before it takes a push.
///
/// The order is the simulator's decision where Apple is silent (push-protocols D.2.3, F): Apple only says that
/// authorization comes before the token is looked at.
struct APNsCheck: Sendable {
    let name: String
    let run: @Sendable (inout APNsReview) throws(APNsRefusal) -> Void

    init(_ name: String, _ run: @escaping @Sendable (inout APNsReview) throws(APNsRefusal) -> Void) {
        self.name = name
        self.run = run
    }

    static let all: [APNsCheck] = [
        APNsCheck("method") { review throws(APNsRefusal) in try review.checkMethod() },
        APNsCheck("path") { review throws(APNsRefusal) in try review.checkPath() },
        APNsCheck("repeated headers") { review throws(APNsRefusal) in try review.checkRepeatedHeaders() },
        APNsCheck("id") { review throws(APNsRefusal) in try review.checkID() },
        APNsCheck("expiration") { review throws(APNsRefusal) in try review.checkExpiration() },
        APNsCheck("priority") { review throws(APNsRefusal) in try review.checkPriority() },
        APNsCheck("push type") { review throws(APNsRefusal) in try review.checkPushType() },
        APNsCheck("collapse id") { review throws(APNsRefusal) in try review.checkCollapseID() },
        APNsCheck("authorization") { review throws(APNsRefusal) in try review.checkAuthorization() },
        APNsCheck("topic") { review throws(APNsRefusal) in try review.checkTopic() },
        APNsCheck("type and topic") { review throws(APNsRefusal) in try review.checkTypeAgainstTopic() },
        APNsCheck("background priority") { review throws(APNsRefusal) in try review.checkBackgroundPriority() },
        APNsCheck("size") { review throws(APNsRefusal) in try review.checkSize() },
        APNsCheck("body") { review throws(APNsRefusal) in try review.checkBody() },
        APNsCheck("payload") { review throws(APNsRefusal) in try review.checkPayload() },
        APNsCheck("token") { review throws(APNsRefusal) in try review.checkToken() },
        APNsCheck("registration") { review throws(APNsRefusal) in try review.checkRegistration() },
    ]
}
