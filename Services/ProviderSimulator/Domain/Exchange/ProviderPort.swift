import PushProtocol

enum ProviderPort: Hashable, Sendable, CaseIterable {
    case apns(ProviderEnvironment)
    /// FCM, and Google's token endpoint.
    case google
    /// The push service of browsers.
    case webPush

    static let allCases: [ProviderPort] = [.apns(.production), .apns(.development), .google, .webPush]

    /// The name in the control API and the log.
    var name: String {
        switch self {
        case .apns(.production): "apns"
        case .apns(.development): "apns-sandbox"
        case .google: "fcm"
        case .webPush: "webpush"
        }
    }
}

extension MemberReader {
    /// The ports that a member names: one, or all when it is absent.
    func ports(_ name: String) throws(ControlRequestError) -> [ProviderPort] {
        guard let text = try text(name) else { return ProviderPort.allCases }
        guard let port = ProviderPort.allCases.first(where: { $0.name == text }) else {
            throw problem(name, "is none of \(ProviderPort.allCases.map(\.name).joined(separator: ", "))")
        }
        return [port]
    }
}
