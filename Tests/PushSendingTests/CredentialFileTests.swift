import CoreMetrics
import Foundation
import Logging
import MetricsTestKit
import Providers
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import PushSending

/// A changed credential file is loaded; invalid contents leave the old credential in use.
@Suite(.timeLimit(.minutes(2))) struct CredentialFileTests {
    /// An in-memory file system. Each write changes the file's identity.
    private final class Disk: Sendable {
        private struct StoredFile {
            var contents: [UInt8]
            var identity: FileIdentity
        }
        private let state = Mutex<(entries: [String: StoredFile], writes: Int64, reads: Int)>(([:], 0, 0))

        func write(_ text: String?, to path: String = "/key") {
            state.withLock { state in
                state.writes += 1
                state.entries[path] = text.map {
                    StoredFile(
                        contents: Array($0.utf8),
                        identity: FileIdentity(
                            device: 1, inode: UInt64(state.writes), size: Int64($0.utf8.count), modified: state.writes))
                }
            }
        }

        var reads: Int { state.withLock(\.reads) }

        var access: FileAccess {
            FileAccess(
                identity: { path in self.state.withLock { $0.entries[path]?.identity } },
                contents: { path in
                    self.state.withLock { state in
                        state.reads += 1
                        return state.entries[path]?.contents
                    }
                })
        }
    }

    private let disk = Disk()

    private func file() -> CredentialFile<String> {
        CredentialFile(path: "/key", files: disk.access) { contents throws(CredentialError) in
            let text = String(decoding: contents, as: UTF8.self)
            guard text.hasPrefix("key") else { throw .refused(reason: "/key: is not a key") }
            return text
        }
    }

    @Test func `the file is read only when it changes`() async throws {
        disk.write("key 1")
        let file = file()
        #expect(await file.reload() == .loaded)
        for _ in 0..<10 { #expect(await file.reload() == .unchanged) }
        #expect(disk.reads == 1)
        #expect(try file.value() == "key 1")
        disk.write("key 2")
        #expect(try file.value() == "key 1")
        #expect(await file.reload() == .loaded)
        #expect(try file.value() == "key 2")
    }

    @Test func `invalid contents are reported once, and the old credential stays in use`() async throws {
        disk.write("key 1")
        let file = file()
        _ = await file.reload()
        for text in ["garbage", nil, "half a ke"] {
            disk.write(text)
            guard case .refused(let error, keepsOld: true) = await file.reload() else {
                Issue.record("\(text ?? "a missing file") was not refused")
                continue
            }
            #expect("\(error)".hasPrefix("/key: "))
            #expect(file.problem == error)
            #expect(await file.reload() == .unchanged)
            #expect(try file.value() == "key 1")
        }
        disk.write("key 2")
        #expect(await file.reload() == .loaded)
        #expect(file.problem == nil)
        #expect(try file.value() == "key 2")
    }

    @Test func `rewritten contents are no change; restored contents are reported`() async throws {
        disk.write("key 1")
        let file = file()
        _ = await file.reload()
        disk.write("key 1")
        #expect(await file.reload() == .unchanged)
        disk.write("garbage")
        _ = await file.reload()
        disk.write("key 1")
        #expect(await file.reload() == .restored)
        #expect(file.problem == nil)
    }

    @Test func `given a missing file, when it appears, then it is loaded`() async throws {
        let file = file()
        #expect(throws: CredentialError.self) { try file.value() }
        guard case .refused(let error, keepsOld: false) = await file.reload() else {
            Issue.record("not refused")
            return
        }
        #expect(throws: error) { try file.value() }
        #expect(await file.reload() == .unchanged)
        disk.write("key 1")
        #expect(await file.reload() == .loaded)
        #expect(try file.value() == "key 1")
    }

    @Test func `given a replaced symbolic link, as Kubernetes updates secrets, then the file is reloaded`()
        async throws
    {
        let files = FileManager.default
        let root = files.temporaryDirectory.appending(path: "credential-\(UUID())")
        defer { try? files.removeItem(at: root) }
        for (version, text) in [("v1", "key 1"), ("v2", "key 2")] {
            try files.createDirectory(at: root.appending(path: version), withIntermediateDirectories: true)
            try text.write(to: root.appending(path: "\(version)/key"), atomically: true, encoding: .utf8)
        }
        func point(_ version: String) throws {
            try files.createSymbolicLink(atPath: root.path + "/next", withDestinationPath: version)
            #expect(rename(root.path + "/next", root.path + "/data") == 0)
        }
        try point("v1")
        try files.createSymbolicLink(atPath: root.path + "/key", withDestinationPath: "data/key")
        let file = CredentialFile(path: root.path + "/key") { contents throws(CredentialError) in
            String(decoding: contents, as: UTF8.self)
        }
        #expect(await file.reload() == .loaded)
        #expect(await file.reload() == .unchanged)
        try point("v2")
        #expect(await file.reload() == .loaded)
        #expect(try file.value() == "key 2")
        try "key 3".write(to: root.appending(path: "v2/key"), atomically: false, encoding: .utf8)
        #expect(await file.reload() == .loaded)
        try files.removeItem(at: root.appending(path: "v2/key"))
        #expect(await file.reload() != .unchanged)
        #expect(try file.value() == "key 3")
    }
}

/// The effects of a changed credential file.
@Suite(.timeLimit(.minutes(2))) struct CredentialWatcherTests {
    private let time = ManualTime()
    private let log = CapturingLogger()
    private let gateway = ScriptedGateway()
    private let route = ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)

    private final class ScriptedFile: WatchedCredential {
        let path = "/key"
        var expiresAt: Date? { Timestamp.sample.date + 3 * 86_400 }
        let reloads: Mutex<[CredentialReload]>
        init(_ reloads: CredentialReload...) { self.reloads = Mutex(reloads) }
        var problem: CredentialError? { nil }
        func reload() async -> CredentialReload { reloads.withLock { $0.isEmpty ? .unchanged : $0.removeFirst() } }
    }

    private func watch(
        _ file: ScriptedFile, renew: @escaping @Sendable () -> Void = {}
    ) -> (CredentialWatcher, ProviderRoutes) {
        let routes = ProviderRoutes([route: gateway], provider: .apns, clock: time.clock, logger: log.logger)
        return (
            CredentialWatcher(
                { [.init(file: file, routes: [route], renew: renew)] }, routes: routes, provider: .apns,
                clock: time.clock,
                logger: log.logger), routes
        )
    }

    @Test func `given a new credential, then it is used and its paused route is probed at once`()
        async throws
    {
        let renewals = Mutex(0)
        let (watch, routes) = watch(ScriptedFile(.loaded)) { renewals.withLock { $0 += 1 } }
        let switches = QueueActionLog()
        let supervisor = RouteSupervisor(
            routes: routes, provider: .apns, clock: time.clock, pause: { switches.add("pause", $0) },
            resume: { switches.add("resume", $0) })
        let running = Task { try await supervisor.run() }
        routes.trip(route, misconfigured: "InvalidProviderToken")
        try await eventually("the pause") { switches.lines.count == 2 }
        await watch.reload()
        #expect(renewals.withLock { $0 } == 1)
        try await eventually("the queues are consumed again") { switches.lines.count == 4 }
        #expect(switches.lines.suffix(2).allSatisfy { $0.hasPrefix("resume") })
        await watch.reload()
        #expect(renewals.withLock { $0 } == 1)
        running.cancel()
        _ = await running.result
    }

    @Test func `given an invalid file, then one log line names it and the old credential is used`() async throws {
        let renewals = Mutex(0)
        let (watch, _) = watch(
            ScriptedFile(.refused(.refused(reason: "/key: is not a key"), keepsOld: true), .unchanged)
        ) { renewals.withLock { $0 += 1 } }
        await watch.reload()
        await watch.reload()
        #expect(renewals.withLock { $0 } == 0)
        let errors = log.lines.filter { $0.level == .error }
        #expect(errors.count == 1)
        #expect(errors.first?.metadata["file"] == "/key")
        #expect(errors.first?.message.contains("old credential stays") == true)
    }

    @Test func `the files are checked every few seconds`() async throws {
        let file = ScriptedFile(.unchanged, .loaded)
        let (watch, _) = watch(file)
        let running = Task { try await watch.run() }
        try await eventually("the watcher sleeps") { time.sleepers == 1 }
        #expect(file.reloads.withLock { $0.count } == 1)
        time.advance(by: CredentialWatcher.interval)
        try await eventually("the files were checked") { file.reloads.withLock { $0.isEmpty } }
        running.cancel()
        _ = await running.result
    }

    @Test func `the expiry of a certificate is recorded at every check`() async throws {
        let metrics = TestMetrics()
        let (watch, _) = watch(ScriptedFile())
        try await withMetricsFactory(metrics) {
            for days in [3.0, 1.0] {
                await watch.reload()
                let labels = [("provider", "apns"), ("app", "demo"), ("environment", "production")]
                let gauge = try metrics.expectGauge("heliograph_certificate_expiry_days", labels)
                #expect(gauge.lastValue == days)
                time.advance(by: .seconds(2 * 86_400))
            }
        }
    }
}
