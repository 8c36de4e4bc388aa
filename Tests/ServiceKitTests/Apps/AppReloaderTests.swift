import Logging
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import ServiceKit

/// New apps of a changed apps file, without a restart.
@Suite struct AppReloaderTests {
    /// A reloader on a file, with the apps that it added.
    final class ReloaderFixture: Sendable {
        struct Refused: Error, CustomStringConvertible { let description: String }

        let folder: TemporaryFolder
        let log = CapturingLogger()
        let readiness = Readiness()
        let added = Mutex<[AppConfiguration]>([])
        /// The reason for which no app can be served.
        let obstacle = Mutex<String?>(nil)
        let clock = Mutex(ContinuousClock.now)
        /// The number of tries to serve an app.
        let tries = Mutex(0)
        private let held = Mutex<AppReloader?>(nil)

        init(_ apps: String) throws {
            folder = try TemporaryFolder()
            try write(apps)
            let path = "\(folder.path)/apps.yaml"
            let reloader = AppReloader(
                path: path, served: try AppCatalog.load(path: path, using: .all), using: .all,
                condition: readiness.condition("apps", .degraded("not watched")), logger: log.logger,
                now: { [unowned self] in clock.withLock { $0 } }
            ) { [unowned self] app in
                tries.withLock { $0 += 1 }
                if let obstacle = obstacle.withLock({ $0 }) { throw Refused(description: obstacle) }
                added.withLock { $0.append(app) }
            }
            held.withLock { $0 = reloader }
        }

        func write(_ apps: String) throws { try folder.write("apps.yaml", "apps:\n\(apps)") }

        func pass(_ time: Duration) { clock.withLock { $0 += time } }

        /// Polls the file once.
        func look() async { await held.withLock { $0 }?.look() }

        var addedApps: [String] { added.withLock { $0.map(\.id.rawValue) } }

        /// The reason for which the condition is degraded.
        var problem: String? {
            guard case .degraded(let reason)? = readiness.report.conditions.first?.state else { return nil }
            return reason
        }

        func lines(with text: String) -> Int {
            log.lines.count { "\($0.message) \($0.metadata)".contains(text) }
        }
    }

    @Test func `a new app is added once, and known apps are not`() async throws {
        let fixture = try ReloaderFixture("  one:\n")
        await fixture.look()
        #expect(fixture.addedApps.isEmpty && fixture.problem == nil)
        try fixture.write("  one:\n  two:\n  three:\n")
        await fixture.look()
        await fixture.look()
        #expect(fixture.addedApps == ["three", "two"])
        #expect(fixture.problem == nil && fixture.readiness.report.isReady)
        #expect(fixture.lines(with: "App added") == 2)
    }

    @Test func `a broken file keeps the former apps and degrades readiness until it is corrected`() async throws {
        let fixture = try ReloaderFixture("  one:\n")
        try fixture.write("  one:\n  two: { apsn: {} }\n")
        await fixture.look()
        await fixture.look()
        #expect(fixture.addedApps.isEmpty)
        #expect(fixture.problem?.contains("apps.yaml:3") == true, "\(fixture.problem ?? "")")
        #expect(fixture.readiness.report.isReady)
        #expect(fixture.log.lines.count { $0.level == .error } == 1)
        try fixture.write("  one:\n  two:\n")
        await fixture.look()
        #expect(fixture.addedApps == ["two"] && fixture.problem == nil)
    }

    @Test func `a file whose credential appears later is accepted then, without another change`() async throws {
        let fixture = try ReloaderFixture("  one:\n")
        try fixture.write("  one:\n  two: { fcm: { service-account-file: late.json } }\n")
        await fixture.look()
        #expect(fixture.addedApps.isEmpty && fixture.problem?.contains("late.json") == true)
        try fixture.folder.write("late.json", "{}")
        await fixture.look()
        #expect(fixture.addedApps == ["two"] && fixture.problem == nil)
    }

    @Test func `an app that cannot be served yet is tried again, and does not delay others`() async throws {
        let fixture = try ReloaderFixture("  one:\n")
        fixture.obstacle.withLock { $0 = "the queue q is missing" }
        try fixture.write("  one:\n  two:\n")
        await fixture.look()
        await fixture.look()
        #expect(fixture.addedApps.isEmpty)
        #expect(fixture.problem?.contains("two") == true && fixture.problem?.contains("queue q is missing") == true)
        #expect(fixture.log.lines.count { $0.level == .error } == 1)
        fixture.obstacle.withLock { $0 = nil }
        fixture.pass(.seconds(2))
        await fixture.look()
        #expect(fixture.addedApps == ["two"] && fixture.problem == nil)
    }

    @Test func `tries become rarer, at least one in 30 seconds, and a changed file is tried at once`() async throws {
        let fixture = try ReloaderFixture("  one:\n")
        fixture.obstacle.withLock { $0 = "the queue q is missing" }
        try fixture.write("  one:\n  two:\n")
        for _ in 0..<600 {
            await fixture.look()
            fixture.pass(.seconds(2))
        }
        // 1200 seconds at a wait of 15 to 30 seconds, after the shorter first ones.
        #expect((40...90).contains(fixture.tries.withLock { $0 }))
        fixture.pass(.seconds(30))
        await fixture.look()
        let tries = fixture.tries.withLock { $0 }
        await fixture.look()
        #expect(fixture.tries.withLock { $0 } == tries)
        try fixture.write("  one:\n  two:\n  # changed\n")
        await fixture.look()
        #expect(fixture.tries.withLock { $0 } == tries + 1)
        fixture.obstacle.withLock { $0 = nil }
        fixture.pass(.seconds(2))
        await fixture.look()
        #expect(fixture.addedApps == ["two"] && fixture.problem == nil)
    }

    @Test func `a removed app and changed settings are logged once, and change nothing`() async throws {
        let fixture = try ReloaderFixture("  one:\n  two:\n")
        try fixture.folder.write("account.json", "{}")
        try fixture.write("  one: { fcm: { service-account-file: account.json } }\n")
        await fixture.look()
        await fixture.look()
        #expect(fixture.addedApps.isEmpty && fixture.problem == nil)
        #expect(fixture.lines(with: "App removed") == 1)
        #expect(fixture.lines(with: "Settings of an app changed") == 1)
        // An app that comes back was never away.
        try fixture.write("  one:\n  two:\n")
        await fixture.look()
        #expect(fixture.addedApps.isEmpty)
    }

    @Test func `a deleted file is refused, and the apps stay`() async throws {
        let fixture = try ReloaderFixture("  one:\n")
        await fixture.look()
        try fixture.folder.remove("apps.yaml")
        await fixture.look()
        #expect(fixture.problem?.contains("cannot be read") == true)
        try fixture.write("  one:\n")
        await fixture.look()
        #expect(fixture.problem == nil)
    }
}
