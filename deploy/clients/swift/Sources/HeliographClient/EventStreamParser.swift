import Foundation

/// One server-sent event.
struct ServerSentEvent: Equatable {
    var name: String
    var data: String
}

/// Reads server-sent events (WHATWG HTML §9.2.6) from the chunks of a response.
struct EventStreamParser {
    /// The maximum size of a line, and of an event's data, in bytes.
    static let maximumSize = 1 << 20

    /// The id of the last event; nil before the first id.
    private(set) var lastID: String?
    /// The server's pause before a reconnect, in seconds.
    private(set) var retry: TimeInterval?

    private var line: [UInt8] = []
    private var isFirstLine = true
    private var endsWithReturn = false
    private var id: String?
    private var name = ""
    private var data: [String] = []
    private var size = 0

    init(lastID: String? = nil) {
        self.lastID = lastID
        id = lastID
    }

    /// The events that the chunk completes.
    mutating func append(_ chunk: Data) throws -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in chunk {
            // CRLF is one end of a line, also across chunks.
            defer { endsWithReturn = byte == 13 }
            if byte == 10, endsWithReturn { continue }
            guard byte == 10 || byte == 13 else {
                line.append(byte)
                guard line.count <= Self.maximumSize else { throw HeliographError.unreadable("a line is too long") }
                continue
            }
            if let event = try endLine() { events.append(event) }
        }
        return events
    }

    private mutating func endLine() throws -> ServerSentEvent? {
        var bytes = line[...]
        if isFirstLine, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        isFirstLine = false
        defer { line.removeAll(keepingCapacity: true) }
        guard !bytes.isEmpty else { return dispatch() }
        let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        var value = bytes[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch String(decoding: bytes[..<colon], as: UTF8.self) {
        case "event": name = text
        case "data":
            size += text.utf8.count
            guard size <= Self.maximumSize else { throw HeliographError.unreadable("an event is too long") }
            data.append(text)
        case "id": if !text.contains("\0") { id = text }
        case "retry":
            if text.allSatisfy("0123456789".contains), let number = Int(text) { retry = Double(number) / 1000 }
        default: break  // A comment, or an unknown field.
        }
        return nil
    }

    private mutating func dispatch() -> ServerSentEvent? {
        defer { (name, data, size) = ("", [], 0) }
        lastID = id
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"))
    }
}
