package import FoundationEssentials

/// Lines of a file, imported in one transaction.
package struct ImportBatch: Sendable {
    /// The maximum lines of a batch. Each takes up to two advisory locks; a default PostgreSQL server has about 6000.
    package static let limit = 1000

    /// A request with its line number, from 1.
    package struct ImportLine: Hashable, Sendable {
        package let line: Int
        package let request: RegistrationRequest
        /// In microseconds, unlike the request's; `nil`: the start of the import.
        package let registeredAt: Date?
        /// Batches are applied in waves, from 0. Within a wave, each token, user and installation occurs once.
        let wave: Int
    }

    package struct RejectedLine: Hashable, Sendable {
        package let line: Int
        package let reason: String
    }

    package private(set) var entries: [ImportLine] = []
    package private(set) var refused: [RejectedLine] = []
    private(set) var waves = 0
    private var numbers = WaveNumbers()

    package init() {}

    package var isFull: Bool { entries.count + refused.count >= Self.limit }

    package mutating func refuse(_ line: Int, because reason: String) {
        refused.append(RejectedLine(line: line, reason: reason))
    }

    package mutating func append(_ request: RegistrationRequest, registeredAt: Date?, line: Int) {
        let wave = numbers.next(for: request)
        waves = max(waves, wave + 1)
        entries.append(ImportLine(line: line, request: request, registeredAt: registeredAt, wave: wave))
    }
}

package struct ImportState: Hashable, Sendable {
    package var startedAt: Date
    /// Lines processed, including the header of a CSV file.
    package var line = 0
    /// Bytes of the file processed.
    package var position = 0
    package var taken = 0
    /// Lines older than the stored registration.
    package var superseded = 0
    package var refused = 0
    package var finishedAt: Date?

    package init(startedAt: Date) { self.startedAt = startedAt }
}
