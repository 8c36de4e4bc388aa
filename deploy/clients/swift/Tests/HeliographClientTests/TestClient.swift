import Foundation

@testable import HeliographClient

/// A clock that does not wait. It keeps the requested pauses.
final class TestClock: @unchecked Sendable {
    private let lock = NSLock()
    private var slept: [TimeInterval] = []
    private var time = Date(timeIntervalSince1970: 1_800_000_000)

    var pauses: [TimeInterval] { lock.withLock { slept } }

    func advance(_ seconds: TimeInterval) { lock.withLock { time += seconds } }

    var clock: ClientClock {
        ClientClock(
            now: { self.lock.withLock { self.time } },
            sleep: { pause in
                try Task.checkCancellation()
                self.lock.withLock {
                    self.slept.append(pause)
                    self.time += pause
                }
                await Task.yield()
            },
            random: { 0 })
    }
}

/// A bearer source that counts its calls.
final class TestBearer: @unchecked Sendable {
    private let lock = NSLock()
    private var calls: [Bool] = []

    var refusals: [Bool] { lock.withLock { calls } }

    func token(_ isRefused: Bool) -> String {
        lock.withLock {
            calls.append(isRefused)
            return isRefused ? "fresh" : "old"
        }
    }
}

func makeClient(
    _ server: StubServer, store: any ClientStore = MemoryStore(), clock: TestClock = TestClock(),
    bearer: TestBearer = TestBearer()
) -> HeliographClient {
    HeliographClient(
        configuration: .init(registry: server.url, rules: server.url), store: store, transport: URLSessionTransport(),
        clock: clock.clock, bearer: { bearer.token($0) })
}

let alert = DeviceToken(kind: "alert", token: "aa11", environment: "production")
let english = InstallationDetails(locale: "en-GB", timeZone: "Europe/London", appVersion: "1.0")
