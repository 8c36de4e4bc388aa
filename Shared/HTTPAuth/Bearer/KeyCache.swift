import FoundationEssentials
import HTTPSFetch
import Logging
import ServiceKit

/// The keys of one source for one algorithm. Refreshed when they are old, and when a token has an unknown `kid`.
///
/// If a refresh fails or yields no usable key, the last keys stay in use.
package actor KeyCache {
    /// The least time between two refreshes.
    static let pause = Duration.seconds(30)
    /// The age at which the keys are refreshed; a withdrawn key is rejected after it.
    static let lifetime = Duration.seconds(600)

    nonisolated let algorithm: BearerVerification.Algorithm
    nonisolated let source: BearerVerification.KeySource
    private let fetch: HTTPSFetch
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger
    private(set) var keys: [VerificationKey] = []
    /// The error of the last refresh, if it failed.
    private(set) var lastError: (any Error)?
    private var begun: ContinuousClock.Instant?
    private var reading: Task<Void, Never>?

    init(
        _ algorithm: BearerVerification.Algorithm, from source: BearerVerification.KeySource, fetch: HTTPSFetch,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant, logger: Logger
    ) {
        self.algorithm = algorithm
        self.source = source
        self.fetch = fetch
        self.uptime = uptime
        self.logger = logger
    }

    /// Refreshes the keys unless the last refresh started within ``pause``; waits for a running refresh.
    func refresh() async {
        if let reading { return await reading.value }
        guard begun.map({ uptime() - $0 >= Self.pause }) ?? true else { return }
        begun = uptime()
        // An unstructured task: other requests wait for it even if the first one is cancelled.
        let task = Task { await read() }
        reading = task
        await task.value
    }

    /// Refreshes the keys if they are old or the last refresh failed.
    func refreshIfDue() async {
        if lastError != nil || begun.map({ uptime() - $0 >= Self.lifetime }) ?? true { await refresh() }
    }

    private func read() async {
        defer { reading = nil }
        do {
            keys = try await VerificationKey.keys(in: try await material(), for: algorithm)
            if lastError != nil {
                logger.notice("Bearer keys refreshed again", metadata: ["source": "\(source.name)"])
            }
            lastError = nil
        } catch {
            if lastError == nil {
                logger.error(
                    "Bearer keys cannot be refreshed; the last keys stay in use",
                    metadata: ["source": "\(source.name)", LogKey.error: "\(error)", "known": "\(keys.count)"])
            }
            lastError = error
        }
    }

    private func material() async throws -> [UInt8] {
        switch source {
        case .file(let path):
            guard let data = try? Data(contentsOf: URL(filePath: path)) else {
                throw KeyMaterialError(description: "cannot be read")
            }
            return Array(data)
        case .url(let url):
            let response = try await fetch.send(
                FetchRequest(url: url, headers: [("Accept", "application/jwk-set+json, application/json")]))
            guard response.status == 200 else {
                throw KeyMaterialError(description: "answered \(response.status) instead of a JWK set")
            }
            return response.body
        }
    }
}

extension BearerVerification.KeySource {
    /// The path or URL.
    var name: String {
        switch self {
        case .file(let path): path
        case .url(let url): url
        }
    }
}
