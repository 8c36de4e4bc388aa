import FoundationEssentials
import PushProtocol

/// Lines that are taken in one transaction.
struct ImportBatch: Sendable {
    /// The most lines of one batch. Each takes up to two of the server's locks, of which it has some 6000 as installed.
    static let limit = 1000

    /// A device and the number of its line, from 1.
    struct Entry: Hashable, Sendable {
        let line: Int
        let device: ImportedDevice
        /// Entries are taken wave by wave, from 0, as a batch of claims is that is registered: in a wave no token, no user
        /// and no installation is there twice.
        let wave: Int
    }

    struct Refused: Hashable, Sendable {
        let line: Int
        let reason: LineRefusal
    }

    private(set) var entries: [Entry] = []
    private(set) var refused: [Refused] = []
    private(set) var waves = 0
    /// The latest wave that each is in.
    private var taken: [Place: Int] = [:]

    private enum Place: Hashable {
        case token(AppID, Provider, DeviceToken)
        case user(AppID, UserID)
        case installation(AppID, InstallationID)
    }

    var isFull: Bool { entries.count + refused.count >= Self.limit }

    mutating func refuse(_ line: Int, because reason: LineRefusal) {
        refused.append(Refused(line: line, reason: reason))
    }

    mutating func append(_ device: ImportedDevice, line: Int) {
        var places: [Place] = [.token(device.app, device.provider, device.token), .user(device.app, device.user)]
        if let installation = device.installation { places.append(.installation(device.app, installation)) }
        let wave = places.compactMap { taken[$0] }.max().map { $0 + 1 } ?? 0
        for place in places { taken[place] = wave }
        waves = max(waves, wave + 1)
        entries.append(Entry(line: line, device: device, wave: wave))
    }
}

/// How far an import has come.
struct ImportState: Hashable, Sendable {
    var startedAt: Date
    /// Lines that are done, the first line of a CSV file among them.
    var line = 0
    /// Bytes of the file that are done.
    var position = 0
    var taken = 0
    /// Lines about which something later is known.
    var void = 0
    var refused = 0
    var finishedAt: Date?
}
