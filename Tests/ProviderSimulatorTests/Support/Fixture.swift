import Crypto
import CryptoExtras
import PushProtocol

@testable import ProviderSimulator

/// The configuration of the conformance vectors.
enum Fixture {
    /// 2026-01-01T00:00:00Z.
    static let now = Timestamp(milliseconds: 1_767_225_600_000)
    static let bundle = "com.example.app"
    static let keyID = "ABC123DEFG"
    static let teamID = "DEF123GHIJ"
    static let id = "123e4567-e89b-12d3-a456-426614174000"
    static let token = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    static let project = "demo-project"
    static let registrationToken = "fcmTok_1:APA91bExample"
    static let account = "sender@demo-project.iam.gserviceaccount.com"

    static let apps: KnownApps = {
        var apps = KnownApps()
        try! apps.add(
            APNsKey(
                keyID: keyID, teamID: teamID, publicKey: Signing.apnsKey.publicKey,
                topics: [bundle, "com.example.voip"], environments: [.production, .development]))
        apps.add(
            ServiceAccount(
                email: account, keyID: "key-1", project: project, publicKey: Signing.accountKey.publicKey))
        apps.add(
            ServiceAccount(
                email: "other@other-project.iam.gserviceaccount.com", keyID: "key-2", project: "other-project",
                publicKey: Signing.otherAccountKey.publicKey))
        return apps
    }()

    static func simulator(_ change: (inout SimulatorState) -> Void = { _ in }) -> Simulator {
        var state = SimulatorState(apps: apps)
        change(&state)
        return Simulator(state: state)
    }

    static let authorization = "bearer " + Signing.providerToken()

    /// The request of vector A01, modified by `change`.
    static func push(_ change: (inout PushDraft) -> Void = { _ in }) -> ProviderRequest {
        var draft = PushDraft()
        change(&draft)
        return draft.request
    }

    /// A send call with an access token of `simulator`.
    static func send(
        _ message: JSONValue, validateOnly: Bool? = nil, project: String = project, to simulator: Simulator,
        at: Timestamp = now
    ) -> ProviderRequest {
        let accessToken = simulator.state.accessTokens.issue(project: project, lifetime: 3600, at: at)
        var body: [String: JSONValue] = ["message": message]
        if let validateOnly { body["validate_only"] = .bool(validateOnly) }
        return google(
            "/v1/projects/\(project)/messages:send", Fixture.json(.object(body)),
            headers: [Header("authorization", "Bearer \(accessToken)"), Header("content-type", "application/json")])
    }

    static func google(
        _ path: String, _ body: [UInt8], headers: [Header] = [], method: String = "POST", at: Timestamp = now
    ) -> ProviderRequest {
        ProviderRequest(
            connection: 1, stream: 1, method: method, path: path, headers: headers, body: body, receivedAt: at)
    }

    static func json(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(value)
        return writer.bytes
    }
}

/// An APNs request under construction.
struct PushDraft {
    var connection = 1
    var stream: Int32 = 1
    var method = "POST"
    var path = "/3/device/\(Fixture.token)"
    var receivedAt = Fixture.now
    var hasClientCertificate = false
    var body = Array(#"{"aps":{"alert":{"title":"Hi","body":"Yo"}}}"#.utf8)
    private(set) var headers = [
        Header("authorization", Fixture.authorization), Header("apns-push-type", "alert"),
        Header("apns-topic", Fixture.bundle), Header("apns-priority", "10"), Header("apns-id", Fixture.id),
    ]

    /// The value of a header; `nil` removes it.
    subscript(name: String) -> String? {
        get { headers.first { $0.name == name }?.value }
        set {
            headers.removeAll { $0.name == name }
            if let newValue { headers.append(Header(name, newValue)) }
        }
    }

    mutating func append(_ header: Header) { headers.append(header) }

    mutating func payload(_ text: String) { body = Array(text.utf8) }

    /// Sets push type, topic and payload.
    mutating func type(_ type: String, topic: String = Fixture.bundle, _ payload: String) {
        self["apns-push-type"] = type
        self["apns-topic"] = topic
        self.payload(payload)
    }

    var request: ProviderRequest {
        ProviderRequest(
            connection: connection, stream: stream, method: method, path: path, headers: headers, body: body,
            receivedAt: receivedAt, hasClientCertificate: hasClientCertificate)
    }
}

/// A simulated response, parsed.
struct ReceivedResponse: Equatable {
    let status: Int
    let headers: [String: String]
    let body: JSONValue?

    init?(_ actions: [WireAction]) {
        for case .respond(let reply, _) in actions {
            status = reply.status
            headers = Dictionary(reply.headers.map { ($0.name, $0.value) }) { first, _ in first }
            body = try? ProviderJSON.value(of: reply.body)
            return
        }
        return nil
    }

    var reason: String? { body?["reason"]?.string }
}

extension Simulator {
    func push(_ environment: ProviderEnvironment = .production, _ change: (inout PushDraft) -> Void = { _ in })
        -> ReceivedResponse?
    {
        ReceivedResponse(respondAPNs(Fixture.push(change), in: environment))
    }

    func send(_ message: JSONValue, validateOnly: Bool? = nil) -> ReceivedResponse? {
        ReceivedResponse(respondGoogle(Fixture.send(message, validateOnly: validateOnly, to: self)))
    }

    func play(_ text: String) throws {
        play(try OutcomeScript.read(try ProviderJSON.value(of: Array(text.utf8))))
    }
}
