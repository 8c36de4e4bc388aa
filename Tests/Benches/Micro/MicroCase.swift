import FoundationEssentials
import Providers
import PushProtocol
import PushSending
import TokenEncryption

/// The operations to measure.
enum MicroCase: String, CaseIterable {
    case decodePush = "decode-push"
    case decodePushOf100 = "decode-push-of-100"
    case encodeOutcomesOf100 = "encode-outcomes-of-100"
    case renderAPNs = "render-apns"
    case renderFCM = "render-fcm"
    case classifyAcceptedAPNs = "classify-accepted-apns"
    case classifyUnregisteredAPNs = "classify-unregistered-apns"
    case classifyAcceptedFCM = "classify-accepted-fcm"
    case classifyUnregisteredFCM = "classify-unregistered-fcm"
    /// From delivery to acknowledgement, with a simulated broker and provider.
    case stage
    case stageOf100 = "stage-of-100"
    case stageFCM = "stage-fcm"
    case stageCounted = "stage-with-census"
    case sealToken = "seal-token"
    case openToken = "open-token"

    func run(_ times: Int) {
        switch self {
        case .decodePush: repeated(times, BenchPush.body(targets: 1)) { keep(try? Push.decode(wireBody: $0)) }
        case .decodePushOf100: repeated(times, BenchPush.body(targets: 100)) { keep(try? Push.decode(wireBody: $0)) }
        case .encodeOutcomesOf100: repeated(times, BenchPush.outcomes(100)) { keep(try? $0.wireBody()) }
        case .renderAPNs: render(times, APNsCodec(topic: "com.example.app"), BenchPush.delivered(targets: 1))
        case .renderFCM: render(times, FCMCodec(project: "example"), BenchPush.delivered(targets: 1, provider: .fcm))
        case .classifyAcceptedAPNs: classify(times, APNsCodec(topic: "com.example.app"), .apnsAccepted, .apns)
        case .classifyUnregisteredAPNs: classify(times, APNsCodec(topic: "com.example.app"), .apnsUnregistered, .apns)
        case .classifyAcceptedFCM: classify(times, FCMCodec(project: "example"), .fcmAccepted, .fcm)
        case .classifyUnregisteredFCM: classify(times, FCMCodec(project: "example"), .fcmUnregistered, .fcm)
        case .stage: BenchStage(pushes: times, targets: 1, provider: .apns).run()
        case .stageOf100: BenchStage(pushes: times, targets: 100, provider: .apns).run()
        case .stageFCM: BenchStage(pushes: times, targets: 1, provider: .fcm).run()
        case .stageCounted: BenchStage(pushes: times, targets: 1, provider: .apns, isCounted: true).run()
        case .sealToken:
            repeated(times, BenchToken()) { keep($0.cipher.seal($0.token, device: $0.device, app: $0.app)) }
        case .openToken:
            repeated(times, BenchToken()) { keep(try? $0.cipher.open($0.stored, device: $0.device, app: $0.app)) }
        }
    }

    private func repeated<Input>(_ times: Int, _ input: Input, _ body: (Input) -> Void) {
        for _ in 0..<times { body(input) }
    }

    private func render(_ times: Int, _ codec: some ProviderCodec, _ push: Push) {
        repeated(times, push) { push in
            var batch = ProviderRequestBatch(path: codec.path)
            let rendering = codec.render(push, now: BenchPush.now)
            rendering.begin(in: &batch)
            try? rendering.add(push.targets[0], to: &batch)
            keep(batch)
        }
    }

    private func classify(_ times: Int, _ codec: some ProviderCodec, _ response: ProviderResponse, _ provider: Provider)
    {
        let sent = ResponseContext(
            target: BenchPush.push(targets: 1, provider: provider).targets[0], now: BenchPush.now,
            credentialAge: .seconds(60))
        repeated(times, response) { keep(codec.consequence(of: $0, to: sent)) }
    }
}

/// An APNs token and its encrypted form.
private struct BenchToken {
    let cipher: TokenCipher
    let token = DeviceToken(secret: String(repeating: "9f", count: 32))
    let device = UUID()
    let app = BenchPush.push(targets: 1).app
    let stored: String

    init() {
        let key = "k1:\(Data(repeating: 1, count: 32).base64EncodedString())"
        guard let cipher = try? TokenCipher(file: Array(key.utf8)) else { preconditionFailure("a key of 32 bytes") }
        self.cipher = cipher
        stored = cipher.seal(token, device: device, app: app)
    }
}

/// Prevents the compiler from removing `value`.
@inline(never) private func keep<Value>(_ value: Value) {
    withExtendedLifetime(value) {}
}
