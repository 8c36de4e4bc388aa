import FoundationEssentials
import HTTPSFetch
import Logging
import PushProtocol
import ServiceKit

/// The keys of one source for one algorithm, read anew when they are old and when a token names one that is not there.
/// While the source is away, or holds nothing of use, the keys that were there last stay in force.
package actor KeyRing {
    /// Between two readings, however many unknown keys tokens name.
    static let pause = Duration.seconds(30)
    /// After which a key that was withdrawn is not accepted any more.
    static let lifetime = Duration.seconds(600)

    nonisolated let algorithm: BearerVerification.Algorithm
    nonisolated let source: BearerVerification.Keys
    private let fetch: HTTPSFetch
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger
    private(set) var keys: [VerificationKey] = []
    /// What kept the last reading from giving keys.
    private(set) var trouble: (any Error)?
    private var begun: ContinuousClock.Instant?
    private var reading: Task<Void, Never>?

    init(
        _ algorithm: BearerVerification.Algorithm, from source: BearerVerification.Keys, fetch: HTTPSFetch,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant, logger: Logger
    ) {
        self.algorithm = algorithm
        self.source = source
        self.fetch = fetch
        self.uptime = uptime
        self.logger = logger
    }

    /// Reads the keys anew, unless that was begun within the last ``pause``; waits for a reading that is under way.
    func refresh() async {
        if let reading { return await reading.value }
        guard begun.map({ uptime() - $0 >= Self.pause }) ?? true else { return }
        begun = uptime()
        // Of its own: whoever asked first may hang up, and others wait for it too.
        let task = Task { await read() }
        reading = task
        await task.value
    }

    /// Reads the keys anew if they are old, or could not be had.
    func refreshIfDue() async {
        if trouble != nil || begun.map({ uptime() - $0 >= Self.lifetime }) ?? true { await refresh() }
    }

    private func read() async {
        defer { reading = nil }
        do {
            keys = try await VerificationKey.keys(in: try await material(), for: algorithm)
            if trouble != nil {
                logger.notice("Keys for bearer tokens can be had again", metadata: ["source": "\(source.name)"])
            }
            trouble = nil
        } catch {
            if trouble == nil {
                logger.error(
                    "Keys for bearer tokens cannot be had; those that are known stay in force",
                    metadata: ["source": "\(source.name)", LogKey.error: "\(error)", "known": "\(keys.count)"])
            }
            trouble = error
        }
    }

    private func material() async throws -> [UInt8] {
        switch source {
        case .file(let path):
            guard let data = try? Data(contentsOf: URL(filePath: path)) else {
                throw UnusableKeys(description: "cannot be read")
            }
            return Array(data)
        case .url(let url):
            let response = try await fetch.send(
                FetchRequest(url: url, headers: [("Accept", "application/jwk-set+json, application/json")]))
            guard response.status == 200 else {
                throw UnusableKeys(description: "answered \(response.status) where a JWK set was expected")
            }
            return response.body
        }
    }
}

extension BearerVerification.Keys {
    /// For people.
    var name: String {
        switch self {
        case .file(let path): path
        case .url(let url): url
        }
    }
}
