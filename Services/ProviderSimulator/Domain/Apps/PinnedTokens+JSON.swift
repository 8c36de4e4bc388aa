import PushProtocol

extension PinnedTokens {
    /// Pins one posted token or a list. Pins none if one is invalid.
    ///
    /// - Returns: the number of tokens pinned.
    func register(_ value: JSONValue) throws(ControlRequestError) -> Int {
        let actions = try MemberReader.elements(of: value, Self.read)
        for action in actions { action(self) }
        return actions.count
    }

    private static func read(at path: String, _ value: JSONValue) throws(ControlRequestError) -> (PinnedTokens) -> Void
    {
        let members = try MemberReader(
            value, at: path,
            known: ["provider", "token", "environment", "topic", "project", "token_only", "fid_unregistered_ms"])
        guard let provider = try members.choice("provider", of: Provider.self) else {
            throw members.problem("provider", "is missing; it is apns or fcm")
        }
        guard let token = try members.text("token"), let token = DeviceToken(token, for: provider)?.secret else {
            throw members.problem("token", "is not a token of \(provider.rawValue)")
        }
        switch provider {
        case .apns:
            for name in ["project", "token_only", "fid_unregistered_ms"] where members.has(name) {
                throw members.problem(name, "has no meaning for apns")
            }
            let environment = try members.text("environment")
            let known = environment.flatMap(ProviderEnvironment.init(clientName:))
            if environment != nil, known == nil {
                throw members.problem("environment", "is none of production, development, sandbox")
            }
            let registration = APNs(environment: known, topic: try members.text("topic"))
            return { $0.register(token, registration) }
        case .fcm:
            for name in ["environment", "topic"] where members.has(name) {
                throw members.problem(name, "has no meaning for fcm")
            }
            guard let project = try members.text("project") else { throw members.problem("project", "is missing") }
            var registration = FCM(project: project, isTokenOnly: try members.flag("token_only"))
            if let time = try members.integer("fid_unregistered_ms", in: 0...86_400_000) {
                registration.fidUnregisteredUntil = .now + .milliseconds(time)
            }
            return { [registration] in $0.register(token, registration) }
        case .webpush: throw members.problem("provider", "is apns or fcm")
        }
    }
}
