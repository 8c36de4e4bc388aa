import PushProtocol
import Testing

struct UserHashTests {
    private func key(_ user: String) -> Int64 { UserHash(UserID(rawValue: user)!).rawValue }

    @Test func `a user's hash is stable`() {
        #expect(key("457") == 909_399_359_597_168)
        #expect(key("457") == key("457"))
    }

    @Test func `ten thousand users have distinct hashes, all exact in JSON`() {
        let keys = Set((0..<10_000).map { key("user-\($0)") })
        #expect(keys.count == 10_000)
        #expect(keys.allSatisfy { (0..<1 << 53).contains($0) })
    }
}
