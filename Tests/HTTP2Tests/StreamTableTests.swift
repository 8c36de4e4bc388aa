import Testing
import TestSupport

@testable import HTTP2

struct StreamTableTests {
    /// Opens and closes streams like a connection, some open for long, and compares the table with a dictionary.
    @Test(arguments: [1, 20, 200, 1000])
    func `a stream table behaves like a dictionary`(limit: Int) {
        var generator = SplitMix(seed: UInt64(limit))
        var table = StreamTable<Int>(), model: [Int32: Int] = [:]
        var next: Int32 = 1
        for step in 0..<20_000 {
            if model.count < limit, Bool.random(using: &generator) {
                table.insert(step, at: next)
                model[next] = step
                next += 2
            } else if let id = Bool.random(using: &generator) ? model.keys.min() : model.keys.max() {
                #expect(table.remove(id) == model.removeValue(forKey: id))
                #expect(table.remove(id) == nil)
            }
            let probe = Int32.random(in: 0...next, using: &generator)
            #expect(table[probe] == model[probe])
            #expect(table.count == model.count)
        }
        #expect(table.inOrder.map(\.id) == model.keys.sorted())
    }

    @Test func `a stream that stays open is found after many later ones`() {
        var table = StreamTable<String>()
        table.insert("old", at: 1)
        for id in stride(from: Int32(3), through: 10_001, by: 2) {
            table.insert("new", at: id)
            _ = table.remove(id)
        }
        table.insert("last", at: 10_003)
        #expect(table[1] == "old")
        #expect(table.inOrder.map(\.value) == ["old", "last"])
        #expect(table.remove(1) == "old")
    }
}
