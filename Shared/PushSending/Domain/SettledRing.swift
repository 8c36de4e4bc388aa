import FoundationEssentials
import PushProtocol

/// The last so many outcomes, found by their push: records of one size in a ring that is set aside once, since a sender
/// remembers tens of thousands. Pure.
///
/// Records of the same push, and of pushes whose ids fall together, are chained from the newest to the oldest. A place is
/// named by how many were written before it, so that a link to what was overwritten since shows itself.
struct SettledRing {
    private struct Record {
        var push: UUID
        var notification: UUID
        /// Without a device, all zeros; `hasDevice` tells.
        var device: UUID
        /// What the provider called it, where that is an id.
        var id: UUID
        var at: Int64
        var registeredAt: Int64
        /// Milliseconds of uptime.
        var expires: Int64
        /// The number of the next older record of its chain, from 1.
        var older: Int
        var form: Form
        var hasDevice: Bool
        var hasRegisteredAt: Bool
        var elsewhere: ProviderEnvironment?
    }

    private enum Form: UInt8 {
        case accepted
        /// Under an id in lower case.
        case acceptedAsID
        /// What is in `others`.
        case other
    }

    private let capacity: Int
    private var records: [Record] = []
    /// The answers of the records, by place, that are not what nearly all are.
    private var others: [Int: Outcome.Answer] = [:]
    /// The number of the newest record of each chain.
    private var newest: [Int]
    /// Records written so far: the number of the last.
    private var written = 0
    private static let nobody = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
        var chains = 64
        while chains < capacity { chains *= 2 }
        newest = Array(repeating: 0, count: chains)
        // Memory that nothing is written to yet costs nothing.
        records.reserveCapacity(capacity)
    }

    /// Remembers an outcome of `push` until `expires`, in place of the oldest there is.
    mutating func append(_ outcome: Outcome, of push: UUID, expires: Duration) {
        let place = written % capacity
        if records.count == capacity, records[place].form == .other { others[place] = nil }
        var record = Record(
            push: push, notification: outcome.notification, device: outcome.device ?? Self.nobody, id: Self.nobody,
            at: outcome.at.milliseconds, registeredAt: outcome.registeredAt?.milliseconds ?? 0,
            expires: expires.wholeMilliseconds, older: 0, form: .other, hasDevice: outcome.device != nil,
            hasRegisteredAt: outcome.registeredAt != nil, elsewhere: outcome.elsewhere)
        switch outcome.answer {
        case .accepted(nil): record.form = .accepted
        case .accepted(let name?):
            if let id = Hexadecimal.lowerCaseID(name) {
                (record.form, record.id) = (.acceptedAsID, id)
            } else {
                others[place] = outcome.answer
            }
        case .unregistered, .rejected, .throttled, .misconfigured, .expired, .skipped, .unknown:
            others[place] = outcome.answer
        }
        written += 1
        let chain = chain(of: push)
        record.older = newest[chain]
        newest[chain] = written
        if records.count < capacity { records.append(record) } else { records[place] = record }
    }

    /// What is remembered of `push` at `now`, the oldest first.
    func outcomes(of push: UUID, now: Duration) -> [Outcome] {
        var number = newest[chain(of: push)]
        // Nearly every push is new.
        guard number > written - records.count else { return [] }
        let now = now.wholeMilliseconds
        var found: [Outcome] = []
        while number > 0, number > written - records.count {
            let place = (number - 1) % capacity
            if records[place].push == push, records[place].expires > now { found.append(outcome(at: place)) }
            number = records[place].older
        }
        return found.reversed()
    }

    private func outcome(at place: Int) -> Outcome {
        let record = records[place]
        let answer: Outcome.Answer =
            switch record.form {
            case .accepted: .accepted(id: nil)
            case .acceptedAsID: .accepted(id: Hexadecimal.text(of: record.id))
            case .other: others[place] ?? .accepted(id: nil)
            }
        return Outcome(
            notification: record.notification, device: record.hasDevice ? record.device : nil, answer: answer,
            at: Timestamp(milliseconds: record.at),
            registeredAt: record.hasRegisteredAt ? Timestamp(milliseconds: record.registeredAt) : nil,
            elsewhere: record.elsewhere)
    }

    private func chain(of push: UUID) -> Int {
        let (high, low) = withUnsafeBytes(of: push.uuid) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        // Ids are digests, but for those of tests and benches, which count: every bit decides.
        var mixed = high &* 0x9e37_79b9_7f4a_7c15 ^ low
        mixed = (mixed ^ mixed >> 32) &* 0xff51_afd7_ed55_8ccd
        mixed = (mixed ^ mixed >> 32) &* 0xc4ce_b9fe_1a85_ec53
        return Int(truncatingIfNeeded: mixed >> 32) & (newest.count - 1)
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
