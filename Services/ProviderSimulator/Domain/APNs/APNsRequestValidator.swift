import PushProtocol

/// Validates one push with an ordered table of checks. Later checks use results of earlier ones.
struct APNsRequestValidator {
    let push: APNsPush
    let connection: APNsConnection
    let apps: KnownApps
    let pinnedTokens: PinnedTokens
    /// The environment of the port that received the push.
    let environment: ProviderEnvironment
    let now: Timestamp

    /// Set by the push-type check; `nil` when the header is absent.
    var type: APNsPushType?
    var key: APNsKey?
    var topic: APNsTopic?
    var payload: [String: JSONValue] = [:]
    /// Set by the token check, in lower case.
    var token: String?

    init(
        _ push: APNsPush, connection: APNsConnection, apps: KnownApps, pinnedTokens: PinnedTokens,
        environment: ProviderEnvironment, now: Timestamp
    ) {
        self.push = push
        self.connection = connection
        self.apps = apps
        self.pinnedTokens = pinnedTokens
        self.environment = environment
        self.now = now
    }

    /// Runs the checks in order and returns the first rejection.
    mutating func rejection() -> APNsRejection? {
        for check in APNsCheck.all {
            do throws(APNsRejection) {
                try check.run(&self)
            } catch {
                return error
            }
        }
        return nil
    }
}

/// One check of a push.
///
/// Apple documents only that authorization precedes the token check. The rest of the order is the simulator's choice.
struct APNsCheck: Sendable {
    let name: String
    let run: @Sendable (inout APNsRequestValidator) throws(APNsRejection) -> Void

    init(_ name: String, _ run: @escaping @Sendable (inout APNsRequestValidator) throws(APNsRejection) -> Void) {
        self.name = name
        self.run = run
    }

    static let all: [APNsCheck] = [
        APNsCheck("method") { validator throws(APNsRejection) in try validator.checkMethod() },
        APNsCheck("path") { validator throws(APNsRejection) in try validator.checkPath() },
        APNsCheck("repeated headers") { validator throws(APNsRejection) in try validator.checkRepeatedHeaders() },
        APNsCheck("id") { validator throws(APNsRejection) in try validator.checkID() },
        APNsCheck("expiration") { validator throws(APNsRejection) in try validator.checkExpiration() },
        APNsCheck("priority") { validator throws(APNsRejection) in try validator.checkPriority() },
        APNsCheck("push type") { validator throws(APNsRejection) in try validator.checkPushType() },
        APNsCheck("collapse id") { validator throws(APNsRejection) in try validator.checkCollapseID() },
        APNsCheck("authorization") { validator throws(APNsRejection) in try validator.checkAuthorization() },
        APNsCheck("topic") { validator throws(APNsRejection) in try validator.checkTopic() },
        APNsCheck("type and topic") { validator throws(APNsRejection) in try validator.checkTypeAgainstTopic() },
        APNsCheck("background priority") { validator throws(APNsRejection) in try validator.checkBackgroundPriority() },
        APNsCheck("size") { validator throws(APNsRejection) in try validator.checkSize() },
        APNsCheck("body") { validator throws(APNsRejection) in try validator.checkBody() },
        APNsCheck("payload") { validator throws(APNsRejection) in try validator.checkPayload() },
        APNsCheck("token") { validator throws(APNsRejection) in try validator.checkToken() },
        APNsCheck("registration") { validator throws(APNsRejection) in try validator.checkRegistration() },
    ]
}
