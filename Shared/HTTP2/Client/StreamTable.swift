/// The open streams of one connection, found by their id.
///
/// Ids of one connection only grow (RFC 9113 §5.1.1), so the low bits alone tell apart the streams that were opened
/// within one length of the ring: a look-up is one comparison. The few that stay open for longer move aside when
/// their place is wanted.
struct StreamTable<Value> {
    private var ring: [(id: Int32, value: Value)?]
    private var strays: [Int32: Value] = [:]
    private(set) var count = 0

    init() {
        ring = Array(repeating: nil, count: 64)
    }

    var isEmpty: Bool { count == 0 }

    private func place(of id: Int32) -> Int { Int(id >> 1) & (ring.count - 1) }

    subscript(id: Int32) -> Value? {
        if let found = ring[place(of: id)], found.id == id { return found.value }
        return strays.isEmpty ? nil : strays[id]
    }

    /// Adds a stream whose id is not in the table.
    mutating func insert(_ value: Value, at id: Int32) {
        if (count + 1) * 2 > ring.count { grow() }
        count += 1
        let place = place(of: id)
        if let older = ring[place] { strays[older.id] = older.value }
        ring[place] = (id, value)
    }

    mutating func remove(_ id: Int32) -> Value? {
        let place = place(of: id)
        if let found = ring[place], found.id == id {
            ring[place] = nil
            count -= 1
            return found.value
        }
        guard !strays.isEmpty, let value = strays.removeValue(forKey: id) else { return nil }
        count -= 1
        return value
    }

    /// Every stream in the order they were opened.
    var inOrder: [(id: Int32, value: Value)] {
        (ring.compactMap { $0 } + strays.map { (id: $0.key, value: $0.value) }).sorted { $0.id < $1.id }
    }

    private mutating func grow() {
        let all = inOrder
        ring = Array(repeating: nil, count: ring.count * 2)
        strays = [:]
        for (id, value) in all {
            let place = place(of: id)
            if let older = ring[place] { strays[older.id] = older.value }
            ring[place] = (id, value)
        }
    }
}
