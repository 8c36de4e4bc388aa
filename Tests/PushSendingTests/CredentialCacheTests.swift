import PushProtocol
import PushSending
import Synchronization
import Testing
import TestSupport

@Suite(.timeLimit(.minutes(2))) struct CredentialCacheTests {
    private let time = ManualTime()
    private let mint = ScriptedMinter()

    @Test func `the credential is minted on first use, once for concurrent callers`() async throws {
        let cache = mint.cache(time.clock) { await Task.yield() }
        #expect(mint.count == 0)
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<500 { group.addTask { try await cache.current().authorization ?? "" } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(tokens == ["bearer 1"])
        #expect(mint.count == 1)
    }

    @Test func `concurrent refusals mint one replacement`() async throws {
        let cache = mint.cache(time.clock) { await Task.yield() }
        let refused = try await cache.current()
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<500 { group.addTask { try await cache.replacing(refused).authorization ?? "" } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(tokens == ["bearer 2"])
        #expect(try await cache.replacing(refused).authorization == "bearer 2")
        #expect(mint.count == 2)
    }

    @Test func `the old credential is used during a renewal`() async throws {
        let release = Mutex(true)
        let cache = mint.cache(time.clock, renewAfter: .seconds(3299), usableFor: .seconds(3599)) {
            while !release.withLock({ $0 }) { await Task.yield() }
        }
        #expect(try await cache.current().authorization == "bearer 1")
        time.advance(by: .seconds(3200))
        #expect(try await cache.current().authorization == "bearer 1")
        release.withLock { $0 = false }
        time.advance(by: .seconds(200))
        #expect(try await cache.current().authorization == "bearer 1")
        release.withLock { $0 = true }
        try await eventually(within: .seconds(60)) { try await cache.current().authorization == "bearer 2" }
        #expect(mint.count == 2)
    }

    @Test func `given a failed renewal, then the old credential is used until it expires`() async throws {
        let cache = mint.cache(time.clock, renewAfter: .seconds(3299), usableFor: .seconds(3599))
        #expect(try await cache.current().authorization == "bearer 1")
        mint.fail(with: .unavailable(reason: "away"))
        time.advance(by: .seconds(3300))
        #expect(try await cache.current().authorization == "bearer 1")
        time.advance(by: .seconds(300))
        await #expect(throws: CredentialError.unavailable(reason: "away")) { try await cache.current() }
    }

    @Test func `given a failed minting, then the next one backs off and callers get the error at once`() async throws {
        let cache = mint.cache(time.clock)
        mint.fail(with: .refused(reason: "no key"))
        await #expect(throws: CredentialError.refused(reason: "no key")) { try await cache.current() }
        await #expect(throws: CredentialError.refused(reason: "no key")) { try await cache.current() }
        #expect(mint.count == 1)
        mint.fail(with: nil)
        time.advance(by: .seconds(1))
        #expect(try await cache.current().authorization == "bearer 2")
    }

    @Test func `a credential prints redacted`() async throws {
        let credential = try await mint.cache(time.clock).current()
        #expect("\(credential)" == "‹redacted›")
        #expect(String(reflecting: credential) == "‹redacted›")
        var dumped = ""
        dump(credential, to: &dumped)
        #expect(!dumped.contains("bearer"))
    }

    @Test func `given a changed key, then a new credential is minted at once and an older minting is not cached`()
        async throws
    {
        let isHeld = Mutex(false)
        let cache = mint.cache(time.clock) { while isHeld.withLock({ $0 }) { await Task.yield() } }
        #expect(try await cache.current().authorization == "bearer 1")
        cache.renew()
        #expect(try await cache.current().authorization == "bearer 2")

        isHeld.withLock { $0 = true }
        cache.renew()
        async let old = cache.current()
        try await eventually("the minting has begun") { cache.isMinting }
        cache.renew()
        async let new = cache.current()
        isHeld.withLock { $0 = false }
        let credentials = try await [old, new]
        #expect(Set(credentials.map(\.authorization)).count == 2)
        #expect(try await cache.current().generation == credentials[1].generation)
    }

    @Test func `given a changed key, then the backoff after a failure ends`() async throws {
        let cache = mint.cache(time.clock)
        mint.fail(with: .refused(reason: "malformed"))
        await #expect(throws: CredentialError.self) { try await cache.current() }
        mint.fail(with: nil)
        await #expect(throws: CredentialError.self) { try await cache.current() }
        cache.renew()
        _ = try await cache.current()
    }

    /// The error of the time of day.
    private final class WallClock: Sendable {
        let error = Mutex(Duration.zero)
    }

    private func misdated(_ wall: WallClock) -> (SenderClock, CredentialCache) {
        let uptime = time.clock.uptime
        let clock = SenderClock(
            now: { .sample + uptime() + wall.error.withLock { $0 } }, uptime: uptime, sleep: time.clock.sleep)
        let count = Mutex(0)
        let cache = CredentialCache(clock: clock) { () throws(CredentialError) in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return MintedCredential(
                authorization: "bearer \(number)", renewAfter: .seconds(3000), usableFor: .seconds(3000),
                issuedAt: clock.now())
        }
        return (clock, cache)
    }

    @Test(arguments: [(61, true), (59, false), (-3000, true), (-2900, false)])
    func `given a credential minted under a wrong clock, when the clock is corrected, then it is replaced`(
        error: Int, isReplaced: Bool
    ) async throws {
        let wall = WallClock()
        wall.error.withLock { $0 = .seconds(error) }
        let (_, cache) = misdated(wall)
        #expect(try await cache.current().authorization == "bearer 1")
        wall.error.withLock { $0 = .zero }
        #expect(try await cache.current().authorization == (isReplaced ? "bearer 2" : "bearer 1"))
    }

    @Test func `given a jumping clock, then a credential is minted at most every 20 minutes`() async throws {
        let wall = WallClock()
        let (_, cache) = misdated(wall)
        #expect(try await cache.current().authorization == "bearer 1")
        wall.error.withLock { $0 = .seconds(7200) }
        #expect(try await cache.current().authorization == "bearer 2")
        wall.error.withLock { $0 = .zero }
        #expect(try await cache.current().authorization == "bearer 2")
        time.advance(by: .seconds(1199))
        #expect(try await cache.current().authorization == "bearer 2")
        time.advance(by: .seconds(1))
        #expect(try await cache.current().authorization == "bearer 3")
    }
}
