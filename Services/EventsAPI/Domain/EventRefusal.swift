import PushProtocol

/// The reason for which an event is not accepted. The message names the problem and the next step, and quotes no value.
struct EventRefusal: Error, Hashable, Sendable {
    /// The HTTP status: 400, 403, 413 or 503.
    var status: Int
    var message: String

    static func invalid(_ message: String) -> EventRefusal { EventRefusal(status: 400, message: message) }
    static func tooLarge(_ message: String) -> EventRefusal { EventRefusal(status: 413, message: message) }
    static func unavailable(_ message: String) -> EventRefusal { EventRefusal(status: 503, message: message) }
}

extension EventRefusal {
    /// The refusal for an event that rules would dead-letter.
    init(_ error: WireError) {
        if case .tooLarge = error {
            self = .tooLarge("the event is too large: \(error)")
        } else {
            self = .invalid("the event is refused: \(error)")
        }
    }
}
