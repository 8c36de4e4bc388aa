import Messaging
import Primitives
import PushProtocol

/// Formats dead letters, without their content.
enum DeadLetterReport {
    static func table(_ letters: [DeadLetter]) -> TextTable {
        var table = TextTable([
            .left("failed at"), .right("attempts"), .left("reason"), .left("routing key"), .left("event"),
            .left("message"), .left("detail"),
        ])
        for letter in letters {
            table.add([
                letter.failedAt.map { RFC3339.seconds(from: $0.date) }, letter.attempt.map { "\($0)" }, letter.reason,
                letter.routingKey, letter.correlation, letter.id ?? "without an id", detail(letter),
            ])
        }
        return table
    }

    static func json(_ letter: DeadLetter) -> JSONValue {
        [
            "failed_at": .time(letter.failedAt?.date), "attempts": letter.attempt.map { .number($0) } ?? .null,
            "reason": .string(letter.reason), "routing_key": .optional(letter.routingKey),
            "event": .optional(letter.correlation), "message": .optional(letter.id),
            "foreign_routing_key": .optional(letter.foreignRoutingKey), "detail": .optional(letter.detail),
        ]
    }

    private static func detail(_ letter: DeadLetter) -> String {
        let foreign = letter.foreignRoutingKey.map { "written by another stage, as \($0)" }
        return [foreign, letter.detail].compactMap { $0 }.joined(separator: ": ")
    }
}
