import Foundation
import PushProtocol

/// The value of the header `Idempotency-Key`: 1 to 255 visible ASCII characters, taken as they are.
///
/// An event without an id gets one derived from the key, so a repeated request is the same event. An event with an id
/// is identified by its source and id, with and without a key.
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

    /// Returns the id of the request's event.
    ///
    /// - Parameter index: the event's position in the batch, from 0; 0 for a single event.
    func eventID(app: AppID, index: Int) -> String {
        DerivedID.uuid5(DerivedID.namespace, ["idempotency-key", app.rawValue, text, String(index)])
            .uuidString.lowercased()
    }
}
