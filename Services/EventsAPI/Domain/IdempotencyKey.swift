import Foundation
import PushProtocol

/// The value of the header `Idempotency-Key`: 1 to 255 visible ASCII characters, taken as they are.
///
/// An event without an id gets one derived from the key and its content, so a repeated request is the same event. Another
/// event under a used key is another event: nothing that is answered with 202 is lost. An event with an id is identified
/// by its source and id, with and without a key.
struct IdempotencyKey: Hashable, Sendable {
    static let maximumLength = 255

    let text: String

    init(_ text: String) throws(EventRefusal) {
        guard (1...Self.maximumLength).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else {
            throw .invalid(
                "the header Idempotency-Key is invalid: expected 1–\(Self.maximumLength) visible ASCII characters")
        }
        self.text = text
    }

    /// Returns the id of an event in the request.
    ///
    /// - Parameters:
    ///   - content: the event without its id, in canonical form.
    ///   - occurrence: the number of equal events before it in the batch.
    func eventID(app: AppID, content: [UInt8], occurrence: Int) -> String {
        DerivedID.uuid5(
            DerivedID.namespace,
            ["idempotency-key", app.rawValue, text, String(decoding: content, as: UTF8.self), String(occurrence)]
        ).uuidString.lowercased()
    }
}
