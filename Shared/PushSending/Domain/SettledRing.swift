import FoundationEssentials
import PushProtocol

/// The last so many outcomes, found by their push: records of one size in a ring that is set aside once, since a sender
/// remembers tens of thousands, and small ones, since they are a good part of what it holds. Pure.
///
/// Records of the same push, and of pushes whose ids fall together, are chained from the newest to the oldest. A link is
/// how many records lie in between, so that one to what was overwritten since shows itself.
struct SettledRing {
    private struct Record {
        var notification: UUID
        /// Without a device, all zeros; `hasDevice` tells.
        var device: UUID
        /// What the provider called it, where that is an id.
        var id: UUID
        var registeredAt: Int64
        /// Milliseconds since 1970 in all but the lowest eight bits, which are the flags.
        var atAndFlags: Int64
        /// Whole seconds of uptime.
        var expires: UInt32

        var at: Int64 { atAndFlags >> 8 }
        var flags: Flags { Flags(rawValue: UInt8(truncatingIfNeeded: atAndFlags)) }
    }

    /// What is looked at to find a push's records among those of others, apart from them: nearly every push that is asked
    /// for is new, and these few bytes stay in the processor's cache.
    private struct Link {
        /// Stands for the push, beside its chain. Who asks compares notifications and devices too, which pushes hardly
        /// ever share.
        var push: UInt32
        /// How far back the next older record of its chain is; 0 for the last of them.
        var older: UInt32
    }

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let hasDevice = Flags(rawValue: 1)
        static let hasRegisteredAt = Flags(rawValue: 2)
        static let inProduction = Flags(rawValue: 4)
        static let inDevelopment = Flags(rawValue: 8)
        /// Accepted under an id in lower case.
        static let acceptedAsID = Flags(rawValue: 16)
        /// Accepted under what is in `names`.
        static let acceptedAsName = Flags(rawValue: 32)
        /// What is in `others`.
        static let other = Flags(rawValue: 64)
    }

    private let capacity: Int
    private var records: [Record] = []
    /// By place, as the records.
    private var links: [Link] = []
    /// What the provider called each, by place: so many bytes and their number before them. As long as no name that is
    /// no id had to be remembered, nothing is here.
    private var names: [UInt8] = []
    private static let nameSlot = 48
    private static let emptySlot = [UInt8](repeating: 0, count: nameSlot)
    /// The parts of an outcome that nearly none has.
    private struct Other {
        var answer: Outcome.Answer
        var refusedFID: String?
        var owner: OwnerKey?
    }

    /// The answers of the records, by place, that are not what nearly all are.
    private var others: [Int: Other] = [:]
    /// The number of the newest record of each chain, from 1 and as far as it fits; 0 without one.
    private var newest: [UInt32]
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
        links.reserveCapacity(capacity)
    }

    /// Whole seconds of an uptime.
    static func seconds(_ uptime: Duration) -> UInt32 { UInt32(clamping: uptime.components.seconds) }

    /// Remembers an outcome of `push` until an uptime in ``seconds(_:)``, in place of the oldest there is.
    mutating func append(_ outcome: Outcome, of push: UUID, expires: UInt32) {
        let place = written % capacity
        if records.count == capacity, records[place].flags.contains(.other) { others[place] = nil }
        var id = Self.nobody
        var flags: Flags
        switch outcome.answer {
        case .accepted(nil): flags = []
        case .accepted(let name?):
            if let known = name.id {
                (flags, id) = (.acceptedAsID, known)
            } else if note(name.text, at: place) {
                flags = .acceptedAsName
            } else {
                flags = .other
            }
        case .unregistered, .rejected, .throttled, .misconfigured, .expired, .skipped, .unknown: flags = .other
        }
        if outcome.refusedFID != nil || outcome.owner != nil { flags = .other }
        if flags == .other {
            others[place] = Other(answer: outcome.answer, refusedFID: outcome.refusedFID, owner: outcome.owner)
        }
        if outcome.device != nil { flags.insert(.hasDevice) }
        if outcome.registeredAt != nil { flags.insert(.hasRegisteredAt) }
        switch outcome.elsewhere {
        case .production: flags.insert(.inProduction)
        case .development: flags.insert(.inDevelopment)
        case nil: break
        }
        let print = Self.print(of: push)
        let chain = chain(of: print)
        written += 1
        let number = UInt32(truncatingIfNeeded: written)
        let record = Record(
            notification: outcome.notification, device: outcome.device ?? Self.nobody, id: id,
            registeredAt: outcome.registeredAt?.milliseconds ?? 0,
            atAndFlags: outcome.at.milliseconds << 8 | Int64(flags.rawValue),
            expires: expires)
        let link = Link(
            push: UInt32(truncatingIfNeeded: print), older: newest[chain] == 0 ? 0 : number &- newest[chain])
        newest[chain] = number
        if records.count < capacity {
            records.append(record)
            links.append(link)
        } else {
            (records[place], links[place]) = (record, link)
        }
    }

    /// Keeps a provider's name for what is at `place`; false for one that is too long.
    private mutating func note(_ name: String, at place: Int) -> Bool {
        var name = name
        return name.withUTF8 { name in
            guard name.count < Self.nameSlot else { return false }
            let start = place * Self.nameSlot
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

    /// What is remembered of `push` at `now`, the oldest first.
    func outcomes(of push: UUID, now: Duration) -> [Outcome] {
        let print = Self.print(of: push)
        let head = newest[chain(of: print)]
        var age = Int(UInt32(truncatingIfNeeded: written) &- head)
        // Nearly every push is new.
        guard head != 0, age < records.count else { return [] }
        let now = Self.seconds(now)
        var found: [Outcome] = []
        while age < records.count {
            let place = (written - age - 1) % capacity
            let link = links[place]
            if link.push == UInt32(truncatingIfNeeded: print), records[place].expires > now {
                found.append(outcome(at: place))
            }
            guard link.older > 0 else { break }
            age += Int(link.older)
        }
        return found.reversed()
    }

    private func outcome(at place: Int) -> Outcome {
        let record = records[place]
        let flags = record.flags
        let other = flags.contains(.other) ? others[place] : nil
        return Outcome(
            notification: record.notification, device: flags.contains(.hasDevice) ? record.device : nil,
            answer: answer(at: place), at: Timestamp(milliseconds: record.at),
            registeredAt: flags.contains(.hasRegisteredAt) ? Timestamp(milliseconds: record.registeredAt) : nil,
            elsewhere: flags.contains(.inProduction)
                ? .production : flags.contains(.inDevelopment) ? .development : nil,
            refusedFID: other?.refusedFID, owner: other?.owner)
    }

    private func answer(at place: Int) -> Outcome.Answer {
        let flags = records[place].flags
        if flags.contains(.other) { return others[place]?.answer ?? .accepted(id: nil) }
        if flags.contains(.acceptedAsID) { return .accepted(id: ProviderName(records[place].id)) }
        guard flags.contains(.acceptedAsName) else { return .accepted(id: nil) }
        let start = place * Self.nameSlot + 1
        let name = String(decoding: names[start..<start + Int(names[start - 1])], as: UTF8.self)
        return .accepted(id: ProviderName(name))
    }

    private func chain(of print: UInt64) -> Int { Int(truncatingIfNeeded: print >> 32) & (newest.count - 1) }

    private static func print(of push: UUID) -> UInt64 {
        let (high, low) = withUnsafeBytes(of: push.uuid) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        // Ids are digests, but for those of tests and benches, which count: every bit decides.
        var mixed = high &* 0x9e37_79b9_7f4a_7c15 ^ low
        mixed = (mixed ^ mixed >> 32) &* 0xff51_afd7_ed55_8ccd
        mixed = (mixed ^ mixed >> 32) &* 0xc4ce_b9fe_1a85_ec53
        return mixed
    }
}
