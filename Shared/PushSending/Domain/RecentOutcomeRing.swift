import FoundationEssentials
import PushProtocol

/// Ring buffer of the last outcomes, looked up by push. Pure.
///
/// A sender keeps tens of thousands, so records are small and of one size: 50,000 take 5 MB (APNs) or 8 MB (FCM), and a
/// dictionary with a queue of its keys takes 19 or 23 MB (measured with jemalloc). Records of the same push, or with
/// colliding hashes, form a chain from the newest to the oldest. A link is a distance in records, which shows that its
/// record was overwritten.
struct RecentOutcomeRing {
    private struct OutcomeRecord {
        var notification: UUID
        /// Zero without `hasDevice`.
        var device: UUID
        /// The provider's message id, if it is a UUID.
        var id: UUID
        var registeredAt: Int64
        /// Milliseconds since 1970, and the flags in the lowest eight bits.
        var atAndFlags: Int64
        /// Whole seconds of uptime.
        var expires: UInt32

        var at: Int64 { atAndFlags >> 8 }
        var flags: RecordFlags { RecordFlags(rawValue: UInt8(truncatingIfNeeded: atAndFlags)) }
    }

    /// The part of a record that a lookup reads. Stored separately, so that lookups stay in the processor's cache.
    private struct ChainLink {
        /// A hash of the push. Callers also compare notification and device.
        var push: UInt32
        /// The distance to the next older record of the chain; 0 for the oldest.
        var older: UInt32
    }

    private struct RecordFlags: OptionSet {
        let rawValue: UInt8
        static let hasDevice = RecordFlags(rawValue: 1)
        static let hasRegisteredAt = RecordFlags(rawValue: 2)
        static let inProduction = RecordFlags(rawValue: 4)
        static let inDevelopment = RecordFlags(rawValue: 8)
        /// Accepted; the provider's message id is a UUID in lower case.
        static let acceptedAsID = RecordFlags(rawValue: 16)
        /// Accepted; the provider's message id is in `names`.
        static let acceptedAsName = RecordFlags(rawValue: 32)
        /// The answer is in `uncommon`.
        static let other = RecordFlags(rawValue: 64)
    }

    private let capacity: Int
    private var records: [OutcomeRecord] = []
    /// By slot, as `records`.
    private var links: [ChainLink] = []
    /// The provider's message ids that are no UUIDs, by slot: a length byte, then the text. Empty until the first one.
    private var names: [UInt8] = []
    private static let nameSlot = 48
    private static let emptySlot = [UInt8](repeating: 0, count: nameSlot)
    /// The parts of an outcome that are rarely present.
    private struct UncommonParts {
        var answer: Outcome.Answer
        var refusedFID: String?
        var owner: UserHash?
    }

    /// The uncommon parts, by slot.
    private var uncommon: [Int: UncommonParts] = [:]
    /// The number of the newest record of each chain, counted from 1 and truncated; 0 for an empty chain.
    private var newest: [UInt32]
    /// The number of records written so far.
    private var written = 0
    private static let noDevice = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
        var chains = 64
        while chains < capacity { chains *= 2 }
        newest = Array(repeating: 0, count: chains)
        // Untouched pages take no memory.
        records.reserveCapacity(capacity)
        links.reserveCapacity(capacity)
    }

    /// An uptime in whole seconds.
    static func seconds(_ uptime: Duration) -> UInt32 { UInt32(clamping: uptime.components.seconds) }

    /// Stores an outcome of `push`, overwriting the oldest. It expires at an uptime in ``seconds(_:)``.
    mutating func append(_ outcome: Outcome, of push: UUID, expires: UInt32) {
        let slot = written % capacity
        if records.count == capacity, records[slot].flags.contains(.other) { uncommon[slot] = nil }
        var id = Self.noDevice
        var flags: RecordFlags
        switch outcome.answer {
        case .accepted(nil): flags = []
        case .accepted(let name?):
            if let known = name.id {
                (flags, id) = (.acceptedAsID, known)
            } else if storeName(name.text, at: slot) {
                flags = .acceptedAsName
            } else {
                flags = .other
            }
        case .unregistered, .rejected, .throttled, .misconfigured, .expired, .skipped, .unknown: flags = .other
        }
        if outcome.refusedFID != nil || outcome.owner != nil { flags = .other }
        if flags == .other {
            uncommon[slot] = UncommonParts(answer: outcome.answer, refusedFID: outcome.refusedFID, owner: outcome.owner)
        }
        if outcome.device != nil { flags.insert(.hasDevice) }
        if outcome.registeredAt != nil { flags.insert(.hasRegisteredAt) }
        switch outcome.elsewhere {
        case .production: flags.insert(.inProduction)
        case .development: flags.insert(.inDevelopment)
        case nil: break
        }
        let fingerprint = Self.fingerprint(of: push)
        let chain = chain(of: fingerprint)
        written += 1
        let number = UInt32(truncatingIfNeeded: written)
        let record = OutcomeRecord(
            notification: outcome.notification, device: outcome.device ?? Self.noDevice, id: id,
            registeredAt: outcome.registeredAt?.milliseconds ?? 0,
            atAndFlags: outcome.at.milliseconds << 8 | Int64(flags.rawValue),
            expires: expires)
        let link = ChainLink(
            push: UInt32(truncatingIfNeeded: fingerprint), older: newest[chain] == 0 ? 0 : number &- newest[chain])
        newest[chain] = number
        if records.count < capacity {
            records.append(record)
            links.append(link)
        } else {
            (records[slot], links[slot]) = (record, link)
        }
    }

    /// Stores a provider's message id for `slot`; returns false if it is too long.
    private mutating func storeName(_ name: String, at slot: Int) -> Bool {
        var name = name
        return name.withUTF8 { name in
            guard name.count < Self.nameSlot else { return false }
            let start = slot * Self.nameSlot
            if names.isEmpty { names.reserveCapacity(capacity * Self.nameSlot) }
            while names.count < start + Self.nameSlot { names.append(contentsOf: Self.emptySlot) }
            names.withUnsafeMutableBytes { names in
                names[start] = UInt8(name.count)
                UnsafeMutableRawBufferPointer(rebasing: names[start + 1..<start + Self.nameSlot])
                    .copyMemory(from: UnsafeRawBufferPointer(name))
            }
            return true
        }
    }

    /// The outcomes of `push` that have not expired at `now`, the oldest first.
    func outcomes(of push: UUID, now: Duration) -> [Outcome] {
        let fingerprint = Self.fingerprint(of: push)
        let head = newest[chain(of: fingerprint)]
        var age = Int(UInt32(truncatingIfNeeded: written) &- head)
        // Nearly every push is new.
        guard head != 0, age < records.count else { return [] }
        let now = Self.seconds(now)
        var found: [Outcome] = []
        while age < records.count {
            let slot = (written - age - 1) % capacity
            let link = links[slot]
            if link.push == UInt32(truncatingIfNeeded: fingerprint), records[slot].expires > now {
                found.append(outcome(at: slot))
            }
            guard link.older > 0 else { break }
            age += Int(link.older)
        }
        return found.reversed()
    }

    private func outcome(at slot: Int) -> Outcome {
        let record = records[slot]
        let flags = record.flags
        let other = flags.contains(.other) ? uncommon[slot] : nil
        return Outcome(
            notification: record.notification, device: flags.contains(.hasDevice) ? record.device : nil,
            answer: answer(at: slot), at: Timestamp(milliseconds: record.at),
            registeredAt: flags.contains(.hasRegisteredAt) ? Timestamp(milliseconds: record.registeredAt) : nil,
            elsewhere: flags.contains(.inProduction)
                ? .production : flags.contains(.inDevelopment) ? .development : nil,
            refusedFID: other?.refusedFID, owner: other?.owner)
    }

    private func answer(at slot: Int) -> Outcome.Answer {
        let flags = records[slot].flags
        if flags.contains(.other) { return uncommon[slot]?.answer ?? .accepted(id: nil) }
        if flags.contains(.acceptedAsID) { return .accepted(id: ProviderMessageID(records[slot].id)) }
        guard flags.contains(.acceptedAsName) else { return .accepted(id: nil) }
        let start = slot * Self.nameSlot + 1
        let name = String(decoding: names[start..<start + Int(names[start - 1])], as: UTF8.self)
        return .accepted(id: ProviderMessageID(name))
    }

    private func chain(of fingerprint: UInt64) -> Int {
        Int(truncatingIfNeeded: fingerprint >> 32) & (newest.count - 1)
    }

    private static func fingerprint(of push: UUID) -> UInt64 {
        let (high, low) = withUnsafeBytes(of: push.uuid) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        // Mixes all bits: ids are digests, but tests and benches use counters.
        var mixed = high &* 0x9e37_79b9_7f4a_7c15 ^ low
        mixed = (mixed ^ mixed >> 32) &* 0xff51_afd7_ed55_8ccd
        mixed = (mixed ^ mixed >> 32) &* 0xc4ce_b9fe_1a85_ec53
        return mixed
    }
}
