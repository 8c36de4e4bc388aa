/// The open streams of one connection by stream id.
///
/// Stream ids of a connection only grow (RFC 9113 §5.1.1), so the low bits are unique among the streams opened within
/// one ring length and a look-up is one comparison. A stream open for longer moves to `overflow` when its slot is
/// needed.
struct StreamTable<Value> {
    private var ring: [(id: Int32, value: Value)?]
    private var overflow: [Int32: Value] = [:]
    private(set) var count = 0

    init() {
        ring = Array(repeating: nil, count: 64)
    }

    var isEmpty: Bool { count == 0 }

    private func slot(of id: Int32) -> Int { Int(id >> 1) & (ring.count - 1) }

    subscript(id: Int32) -> Value? {
        if let found = ring[slot(of: id)], found.id == id { return found.value }
        return overflow.isEmpty ? nil : overflow[id]
    }

    /// Adds a stream whose id is not in the table.
    mutating func insert(_ value: Value, at id: Int32) {
        if (count + 1) * 2 > ring.count { grow() }
        count += 1
        let slot = slot(of: id)
        if let older = ring[slot] { overflow[older.id] = older.value }
        ring[slot] = (id, value)
    }

    mutating func remove(_ id: Int32) -> Value? {
        let slot = slot(of: id)
        if let found = ring[slot], found.id == id {
            ring[slot] = nil
            count -= 1
            return found.value
        }
        guard !overflow.isEmpty, let value = overflow.removeValue(forKey: id) else { return nil }
        count -= 1
        return value
    }

    /// All streams in the order in which they were opened.
    var inOrder: [(id: Int32, value: Value)] {
        (ring.compactMap { $0 } + overflow.map { (id: $0.key, value: $0.value) }).sorted { $0.id < $1.id }
    }

    private mutating func grow() {
        let all = inOrder
        ring = Array(repeating: nil, count: ring.count * 2)
        overflow = [:]
        for (id, value) in all {
            let slot = slot(of: id)
            if let older = ring[slot] { overflow[older.id] = older.value }
            ring[slot] = (id, value)
        }
    }
}
