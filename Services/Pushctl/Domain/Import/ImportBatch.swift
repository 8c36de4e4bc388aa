import FoundationEssentials
import PushProtocol

/// Lines imported in one transaction.
struct ImportBatch: Sendable {
    /// The maximum lines of a batch. Each takes up to two advisory locks; a default PostgreSQL server has about 6000.
    static let limit = 1000

    /// A device with its line number, from 1.
    struct ImportLine: Hashable, Sendable {
        let line: Int
        let device: ImportedDevice
        /// Batches are applied in waves, from 0. Within a wave, each token, user and installation occurs once.
        let wave: Int
    }

    struct RejectedLine: Hashable, Sendable {
        let line: Int
        let reason: LineError
    }

    private(set) var entries: [ImportLine] = []
    private(set) var refused: [RejectedLine] = []
    private(set) var waves = 0
    /// The latest wave of each key.
    private var taken: [UniqueKey: Int] = [:]

    private enum UniqueKey: Hashable {
        case token(AppID, Provider, DeviceToken)
        case user(AppID, UserID)
        case installation(AppID, InstallationID)
    }

    var isFull: Bool { entries.count + refused.count >= Self.limit }

    mutating func refuse(_ line: Int, because reason: LineError) {
        refused.append(RejectedLine(line: line, reason: reason))
    }

    mutating func append(_ device: ImportedDevice, line: Int) {
        var keys: [UniqueKey] = [.token(device.app, device.provider, device.token), .user(device.app, device.user)]
        if let installation = device.installation { keys.append(.installation(device.app, installation)) }
        let wave = keys.compactMap { taken[$0] }.max().map { $0 + 1 } ?? 0
        for key in keys { taken[key] = wave }
        waves = max(waves, wave + 1)
        entries.append(ImportLine(line: line, device: device, wave: wave))
    }
}

/// The progress of an import.
struct ImportState: Hashable, Sendable {
    var startedAt: Date
    /// Lines processed, including the header of a CSV file.
    var line = 0
    /// Bytes of the file processed.
    var position = 0
    var taken = 0
    /// Lines older than the stored registration.
    var superseded = 0
    var refused = 0
    var finishedAt: Date?
}
