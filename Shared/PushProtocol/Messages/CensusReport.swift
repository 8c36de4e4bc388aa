package import FoundationEssentials

/// The notifications that one process settled since its last report. Exchange `census`, routing key the service's name.
///
/// Every process of a stage publishes one every few seconds, also without notifications. Rules stores it to name the
/// stage of a notification that has no outcome.
package struct CensusReport: WireMessage, Codable, Hashable {
    package static let messageType = "heliograph.census-report"
    package static let messageVersion = 1
    package static let maximumKeys = 12_000

    package var trace: Trace
    /// The service's name, such as `token-registry`.
    package var service: String
    /// A random id of the process.
    package var process: UUID
    /// The end of the interval that the report covers, by the clock of the process.
    package var at: Timestamp
    /// The age of the oldest unsettled delivery, in milliseconds; absent without one.
    package var oldest: Int?
    /// Whether the process stops after this report.
    package var isFinal: Bool
    /// The notifications of acknowledged messages, whose results the broker confirmed.
    package var settled: CensusKeys
    /// The notifications of messages that wait in a retry level, each with the time of its return.
    package var retried: CensusKeys
    /// The notifications of dead-lettered messages.
    package var deadLettered: CensusKeys

    package init(
        trace: Trace, service: String, process: UUID, at: Timestamp, oldest: Int?, isFinal: Bool = false,
        settled: CensusKeys = CensusKeys(), retried: CensusKeys = CensusKeys(), deadLettered: CensusKeys = CensusKeys()
    ) {
        self.trace = trace
        self.service = service
        self.process = process
        self.at = at
        self.oldest = oldest
        self.isFinal = isFinal
        self.settled = settled
        self.retried = retried
        self.deadLettered = deadLettered
    }
}

/// Notification ids, shortened to their first eight bytes, some with a time. In JSON one string in base64.
///
/// The ids are hashes, so 60 of these bits are random: two of a million notifications share a key with a probability
/// of one in a million.
package struct CensusKeys: Hashable, Sendable {
    /// Eight bytes for each key; sixteen for a key with a time.
    package private(set) var bytes: [UInt8]

    package init(bytes: [UInt8] = []) { self.bytes = bytes }

    package var isEmpty: Bool { bytes.isEmpty }

    package static func key(of notification: UUID) -> UInt64 {
        withUnsafeBytes(of: notification.uuid) { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
    }

    package mutating func append(_ notification: UUID) {
        withUnsafeBytes(of: notification.uuid) { bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[..<8])) }
    }

    package mutating func append(_ notification: UUID, at time: Timestamp) {
        append(notification)
        withUnsafeBytes(of: time.milliseconds.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func append(_ keys: CensusKeys) { bytes += keys.bytes }

    package func forEachKey(_ body: (UInt64) -> Void) {
        bytes.withUnsafeBytes { raw in
            for offset in stride(from: 0, to: raw.count - 7, by: 8) {
                body(UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            }
        }
    }

    package func forEachKeyAndTime(_ body: (UInt64, Timestamp) -> Void) {
        bytes.withUnsafeBytes { raw in
            for offset in stride(from: 0, to: raw.count - 15, by: 16) {
                let key = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                let time = Int64(bigEndian: raw.loadUnaligned(fromByteOffset: offset + 8, as: Int64.self))
                body(key, Timestamp(milliseconds: time))
            }
        }
    }

    /// Removes and returns the first keys, at most `count` entries of `size` bytes.
    package mutating func removeFirst(_ count: Int, size: Int) -> CensusKeys {
        let taken = count * size
        guard taken < bytes.count else {
            defer { bytes = [] }
            return self
        }
        defer { bytes.removeFirst(taken) }
        return CensusKeys(bytes: Array(bytes.prefix(taken)))
    }
}

extension CensusKeys: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let data = Data(base64Encoded: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "expected base64")
        }
        bytes = Array(data)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Data(bytes).base64EncodedString())
    }
}
