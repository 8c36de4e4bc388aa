package import PushProtocol
import FoundationEssentials

/// One message for each distinct badge of a push's targets. Filled, padded and encrypted for each target.
package final class WebPushRendering: PushRendering {
    /// The length of a notification id.
    static let idLength = 36

    private let messages: [Int?: Result<JSONTemplate, LocalRejection>]
    private let template: ProviderRequestBatch.HeaderTemplate
    private let codec: WebPushCodec
    private let makeSecrets: @Sendable () -> WebPushEncryption.MessageSecrets

    /// - Parameters:
    ///   - codec: the codec of the requests.
    ///   - secrets: draws new secrets for each message.
    package init(
        _ push: Push, codec: WebPushCodec, now: Timestamp,
        secrets: @escaping @Sendable () -> WebPushEncryption.MessageSecrets = { WebPushEncryption.MessageSecrets() }
    ) {
        self.codec = codec
        makeSecrets = secrets
        let content = push.content
        template = ProviderRequestBatch.HeaderTemplate(
            shared: WebPushHeaders(
                content, app: push.app, lane: push.lane, expiresAt: push.expiresAt, now: now
            ).fields)
        var messages: [Int?: Result<JSONTemplate, LocalRejection>] = [:]
        for badge in Set(push.targets.map(\.badge)) {
            messages[badge] = Result { () throws(LocalRejection) in
                if let key = content.collapseKey, let problem = CollapseID.problem(with: key) {
                    throw LocalRejection("collapse-id-\(problem)")
                }
                return try WebPushMessage(content: content, badge: badge, site: codec.site).template()
            }
        }
        self.messages = messages
    }

    package func begin(in batch: inout ProviderRequestBatch) { batch.begin(template) }

    package func add(_ target: Push.Target, to batch: inout ProviderRequestBatch) throws(LocalRejection) {
        let subscription = try codec.subscription(of: target)
        guard let message = messages[target.badge] else { throw LocalRejection("not-rendered") }
        let text = try message.get()
        let plaintext = ByteWriter.bytes(expected: text.count(filledWith: Self.idLength)) { json in
            text.write(from: 0, filledWith: target.notification, to: &json)
        }
        let body = try WebPushEncryption.encrypt(plaintext, for: subscription, with: makeSecrets())
        batch.write(subscription.endpoint.path)
        batch.endValue()
        batch.endRequest(body: body)
    }
}
