/// Code that reads untrusted bytes.
struct FuzzTarget: Sendable {
    let name: String
    /// Valid inputs, from which the fuzzer derives others.
    let seeds: @Sendable () throws -> [[UInt8]]
    /// Reads an input. An error means that the input was refused; a trap or a report of the sanitizer is a bug.
    let read: @Sendable ([UInt8]) throws -> Void

    init(
        _ name: String, seeds: @escaping @Sendable () throws -> [[UInt8]],
        read: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.name = name
        self.seeds = seeds
        self.read = read
    }

    static let all: [FuzzTarget] = [
        .amqpFrames, .apps, .bearerToken, .censusReport, .channelMessages, .cloudEvent, .deviceLines, .deviceMessages,
        .http2Client,
        .installation, .json, .keyMaterial, .notification, .outcomes, .postgresCells, .preferences, .providerResponse,
        .push, .rules, .texts,
    ]
}

/// Traps unless `condition` is true, in every configuration.
func require(_ condition: Bool, _ problem: @autoclosure () -> String) {
    if !condition { fatalError(problem()) }
}
