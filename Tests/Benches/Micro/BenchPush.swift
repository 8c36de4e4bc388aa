import FoundationEssentials
import Providers
import PushProtocol
import PushSending

/// The push that the registry makes of a chat message, for a number of devices.
enum BenchPush {
    static let app = AppID(rawValue: "family-portal")!
    static let now = Timestamp(milliseconds: 1_767_225_600_000)

    static func push(targets: Int, provider: Provider = .apns, number: Int = 0) -> Push {
        let content = Content(
            title: "New message", body: "Pat: " + String(repeating: "are you coming tonight? ", count: 5),
            sound: "default", category: "chat_message", thread: "family",
            data: ["message_id": "00000000000000000001", "thread_id": .null])
        return Push(
            trace: Trace(id: id(2, number), correlation: "event-\(number)", causation: "notification-\(number)"),
            app: app, provider: provider, environment: .production, lane: .interactive, content: content,
            expiresAt: Timestamp(milliseconds: 4_102_444_800_000),
            targets: (0..<targets).map { target in
                let digits = String(number * targets + target, radix: 16)
                let zeros = String(repeating: "0", count: 64 - digits.count)
                return Push.Target(
                    device: id(3, target), token: DeviceToken(secret: zeros + digits),
                    notification: id(1, number, of: target), badge: 3,
                    registeredAt: Timestamp(milliseconds: 1_767_220_000_000 + Int64(target) * 977))
            })
    }

    static func body(targets: Int, provider: Provider = .apns, number: Int = 0) -> [UInt8] {
        // Encoding cannot fail for a push that a stage decodes.
        try! push(targets: targets, provider: provider, number: number).wireBody()
    }

    /// The push as decoded by a sender.
    static func delivered(targets: Int, provider: Provider = .apns) -> Push {
        try! Push.decode(wireBody: body(targets: targets, provider: provider))
    }

    static func outcomes(_ count: Int) -> Outcomes {
        let push = push(targets: count)
        return Outcomes(
            trace: push.trace.next(id: id(4, 0)), app: app, origin: .apns, environment: .production, lane: .interactive,
            outcomes: push.targets.map {
                Outcome(
                    notification: $0.notification, device: $0.device,
                    answer: .accepted(id: ProviderMessageID($0.pushID)),
                    at: now, registeredAt: nil)
            })
    }

    private static func id(_ kind: UInt8, _ number: Int, of target: Int = 0) -> UUID {
        UUID(
            uuid: (
                kind, 0, 0, 0, UInt8(truncatingIfNeeded: target >> 8), UInt8(truncatingIfNeeded: target), 0x50, 0, 0x80,
                0, 0, 0, UInt8(truncatingIfNeeded: number >> 24),
                UInt8(truncatingIfNeeded: number >> 16), UInt8(truncatingIfNeeded: number >> 8),
                UInt8(truncatingIfNeeded: number)
            ))
    }
}

extension ProviderResponse {
    static let apnsAccepted = ProviderResponse(
        status: 200, headers: ["apns-id": "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a", "apns-unique-id": "x"])
    static let apnsUnregistered = ProviderResponse(
        status: 410, headers: ["apns-id": "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a"],
        body: Array(#"{"reason":"Unregistered","timestamp":1767220000000}"#.utf8))
    static let fcmAccepted = ProviderResponse(
        status: 200, headers: ["content-type": "application/json"],
        body: Array(#"{"name":"projects/example/messages/0:1500415314455276%31bd1c9631bd1c96"}"#.utf8))
    static let fcmUnregistered = ProviderResponse(
        status: 404, headers: ["content-type": "application/json"],
        body: Array(
            #"{"error":{"code":404,"message":"Requested entity was not found.","status":"NOT_FOUND","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNREGISTERED"}]}}"#
                .utf8))
}

/// Produces push bodies that differ only in their ids, at little cost.
struct PushTemplate: Sendable {
    private let text: [UInt8]
    private let idOffsets: [Int]

    init(targets: Int, provider: Provider) {
        let first = BenchPush.body(targets: targets, provider: provider, number: 0)
        text = first
        // The ids of the push and its notifications end in the number; tokens and texts are equal.
        let marks = ["01000000-", "02000000-"].map { Array($0.utf8) }
        idOffsets = first.indices.filter { place in
            marks.contains { first[place...].starts(with: $0) }
        }.map { $0 + 32 }
        precondition(idOffsets.count == targets + 1)
    }

    func body(_ number: Int) -> [UInt8] {
        var body = text
        let digits = "0123456789ABCDEF".utf8
        for offset in idOffsets {
            for place in 0..<4 {
                body[offset + place] =
                    digits[digits.index(digits.startIndex, offsetBy: number >> (12 - 4 * place) & 15)]
            }
        }
        return body
    }
}
