import PushProtocol
import Testing

struct OwnerKeyTests {
    private func key(_ user: String) -> Int64 { OwnerKey(UserID(rawValue: user)!).rawValue }

    @Test func `a user has the same number everywhere and always`() {
        #expect(key("457") == 909_399_359_597_168)
        #expect(key("457") == key("457"))
    }

    @Test func `ten thousand users in a row have as many numbers, all of which JSON keeps`() {
        let keys = Set((0..<10_000).map { key("user-\($0)") })
        #expect(keys.count == 10_000)
        #expect(keys.allSatisfy { (0..<1 << 53).contains($0) })
    }
}
