/// Frames of AMQP 0-9-1 (§4.2).
enum AMQPSeeds {
    static let all: [[UInt8]] = [
        delivery(exchange: "events", headers: []) + heartbeat,
        delivery(exchange: "return", headers: ourHeaders), delivery(exchange: "dead", headers: deathHeaders),
        delivery(exchange: "events", headers: everyKind),
        frame(1, number(20, 2) + number(40, 2) + number(404, 2) + short("NOT_FOUND") + number(60, 2) + number(40, 2)),
        frame(1, number(60, 2) + number(80, 2) + number(7, 8) + [1]),
        frame(1, number(60, 2) + number(50, 2) + number(312, 2) + short("NO_ROUTE") + short("e") + short("k"))
            + header([], size: 0),
    ]

    private static let heartbeat: [UInt8] = [8, 0, 0, 0, 0, 0, 0, 206]

    private static let ourHeaders = [
        field("heliograph-attempt", "l", number(3, 8)),
        field("heliograph-exchange", "S", long("events")), field("x-delivery-count", "I", number(2, 4)),
    ]

    private static let deathHeaders = [
        field(
            "x-death", "A",
            table(
                [
                    UInt8(ascii: "F")
                ]
                    + table(
                        [
                            field("queue", "S", long("rules.events")), field("exchange", "S", long("events")),
                            field("routing-keys", "A", table([UInt8(ascii: "S")] + long("demo.t"))),
                            field("time", "T", number(1_767_225_600, 8)),
                        ].flatMap(\.self)))),
        field("x-first-death-reason", "S", long("delivery_limit")),
    ]

    private static let everyKind: [[UInt8]] = [
        field("t", "t", [1]), field("b", "b", [0xff]), field("B", "B", [1]), field("s", "s", number(1, 2)),
        field("u", "u", number(1, 2)), field("I", "I", number(1, 4)), field("i", "i", number(1, 4)),
        field("l", "l", number(1, 8)), field("L", "L", number(1, 8)), field("f", "f", number(1, 4)),
        field("d", "d", number(1, 8)), field("D", "D", [2] + number(314, 4)), field("x", "x", long("bytes")),
        field("V", "V", []), field("F", "F", table([])), field("A", "A", table([])),
    ]

    private static func delivery(exchange: String, headers: [[UInt8]]) -> [UInt8] {
        let method = number(60, 2) + number(60, 2) + short("c") + number(1, 8) + [1] + short(exchange)
        return frame(1, method + short("rules.events")) + header(headers, size: 5) + frame(3, Array("hel".utf8))
            + frame(3, Array("lo".utf8))
    }

    /// A content header with content type, headers, delivery mode, message id, timestamp and type.
    private static func header(_ headers: [[UInt8]], size: Int) -> [UInt8] {
        let properties =
            short("application/json") + table(headers.flatMap(\.self)) + [2] + short("id") + number(1_767_225_600, 8)
            + short("t")
        return frame(2, number(60, 2) + number(0, 2) + number(size, 8) + number(0b1011_0000_1110_0000, 2) + properties)
    }

    private static func frame(_ type: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [type, 0, 1] + number(payload.count, 4) + payload + [206]
    }

    private static func field(_ name: String, _ kind: Character, _ value: [UInt8]) -> [UInt8] {
        short(name) + [kind.asciiValue ?? 0] + value
    }

    /// The content of a table or array, after its length.
    private static func table(_ content: [UInt8]) -> [UInt8] { number(content.count, 4) + content }
    private static func short(_ text: String) -> [UInt8] { number(text.utf8.count, 1) + Array(text.utf8) }
    private static func long(_ text: String) -> [UInt8] { table(Array(text.utf8)) }

    private static func number(_ value: Int, _ bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
}
