import CoreMetrics
import Foundation
import Logging
import MetricsTestKit
import PushProtocol
import PushSending
import Synchronization
import TestSupport
import Testing

/// A credential is taken up when its file changes, and a malformed one is refused while the old one stays.
@Suite(.timeLimit(.minutes(2))) struct CredentialFileTests {
    /// Files that exist only here. Each write is another identity, as on a disk.
    private final class Disk: Sendable {
        private struct Entry {
            var contents: [UInt8]
            var identity: FileIdentity
        }
        private let state = Mutex<(entries: [String: Entry], writes: Int64, reads: Int)>(([:], 0, 0))

        func write(_ text: String?, to path: String = "/key") {
            state.withLock { state in
                state.writes += 1
                state.entries[path] = text.map {
                    Entry(
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

    @Test func `it is read when it changes, and only then`() async throws {
        disk.write("key 1")
        let file = file()
        #expect(await file.look() == .taken)
        for _ in 0..<10 { #expect(await file.look() == .unchanged) }
        #expect(disk.reads == 1)
        #expect(try file.value() == "key 1")
        disk.write("key 2")
        #expect(try file.value() == "key 1")
        #expect(await file.look() == .taken)
        #expect(try file.value() == "key 2")
    }

    @Test func `malformed contents are told once, and the old ones stay in force`() async throws {
        disk.write("key 1")
        let file = file()
        _ = await file.look()
        for text in ["garbage", nil, "half a ke"] {
            disk.write(text)
            guard case .refused(let error, oldStays: true) = await file.look() else {
                Issue.record("\(text ?? "nothing") was not refused")
                continue
            }
            #expect("\(error)".hasPrefix("/key: "))
            #expect(file.problem == error)
            #expect(await file.look() == .unchanged)
            #expect(try file.value() == "key 1")
        }
        disk.write("key 2")
        #expect(await file.look() == .taken)
        #expect(file.problem == nil)
        #expect(try file.value() == "key 2")
    }

    @Test func `the same contents written again are no change, and a mistake taken back is told`() async throws {
        disk.write("key 1")
        let file = file()
        _ = await file.look()
        disk.write("key 1")
        #expect(await file.look() == .unchanged)
        disk.write("garbage")
        _ = await file.look()
        disk.write("key 1")
        #expect(await file.look() == .restored)
        #expect(file.problem == nil)
    }

    @Test func `a file that is not there at the start is taken up when it comes`() async throws {
        let file = file()
        #expect(throws: CredentialError.self) { try file.value() }
        guard case .refused(let error, oldStays: false) = await file.look() else {
            Issue.record("not refused")
            return
        }
        #expect(throws: error) { try file.value() }
        #expect(await file.look() == .unchanged)
        disk.write("key 1")
        #expect(await file.look() == .taken)
        #expect(try file.value() == "key 1")
    }

    @Test func `on a real disk, an exchanged link is a change, as Kubernetes exchanges secrets`() async throws {
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
        #expect(await file.look() == .taken)
        #expect(await file.look() == .unchanged)
        try point("v2")
        #expect(await file.look() == .taken)
        #expect(try file.value() == "key 2")
        try "key 3".write(to: root.appending(path: "v2/key"), atomically: false, encoding: .utf8)
        #expect(await file.look() == .taken)
        try files.removeItem(at: root.appending(path: "v2/key"))
        #expect(await file.look() != .unchanged)
        #expect(try file.value() == "key 3")
    }
}

/// What follows from a changed file.
@Suite(.timeLimit(.minutes(2))) struct CredentialWatchTests {
    private let time = ManualTime()
    private let log = CapturingLogger()
    private let gateway = ScriptedGateway()
    private let key = LaneKey(app: AppID(rawValue: "demo")!, environment: .production)

    private final class ScriptedFile: WatchedCredential {
        let path = "/key"
        var expiresAt: Date? { Timestamp.sample.date + 3 * 86_400 }
        let looks: Mutex<[CredentialLook]>
        init(_ looks: CredentialLook...) { self.looks = Mutex(looks) }
        var problem: CredentialError? { nil }
        func look() async -> CredentialLook { looks.withLock { $0.isEmpty ? .unchanged : $0.removeFirst() } }
    }

    private func watch(
        _ file: ScriptedFile, renew: @escaping @Sendable () -> Void = {}
    ) -> (CredentialWatch, PushLanes) {
        let lanes = PushLanes([key: gateway], provider: .apns, clock: time.clock, logger: log.logger)
        return (
            CredentialWatch(
                [.init(file: file, lanes: [key], renew: renew)], lanes: lanes, provider: .apns, clock: time.clock,
                logger: log.logger), lanes
        )
    }

    @Test func `a new credential is put into force, and a lane that was shut for the old one is tried at once`()
        async throws
    {
        let renewals = Mutex(0)
        let (watch, lanes) = watch(ScriptedFile(.taken)) { renewals.withLock { $0 += 1 } }
        let switches = SwitchLog()
        let supervisor = LaneSupervisor(
            lanes: lanes, provider: .apns, clock: time.clock, pause: { switches.add("pause", $0) },
            resume: { switches.add("resume", $0) })
        let running = Task { try await supervisor.run() }
        lanes.shut(key, misconfigured: "InvalidProviderToken")
        try await eventually("the pause") { switches.lines.count == 2 }
        await watch.look()
        #expect(renewals.withLock { $0 } == 1)
        try await eventually("the queues are consumed again") { switches.lines.count == 4 }
        #expect(switches.lines.suffix(2).allSatisfy { $0.hasPrefix("resume") })
        await watch.look()
        #expect(renewals.withLock { $0 } == 1)
        running.cancel()
        _ = await running.result
    }

    @Test func `a refused one is told in one line that names the file, and puts nothing into force`() async throws {
        let renewals = Mutex(0)
        let (watch, _) = watch(
            ScriptedFile(.refused(.refused(reason: "/key: is not a key"), oldStays: true), .unchanged)
        ) { renewals.withLock { $0 += 1 } }
        await watch.look()
        await watch.look()
        #expect(renewals.withLock { $0 } == 0)
        let errors = log.lines.filter { $0.level == .error }
        #expect(errors.count == 1)
        #expect(errors.first?.metadata["file"] == "/key")
        #expect(errors.first?.message.contains("old credential stays") == true)
    }

    @Test func `it looks every few seconds`() async throws {
        let file = ScriptedFile(.unchanged, .taken)
        let (watch, _) = watch(file)
        let running = Task { try await watch.run() }
        try await eventually("it sleeps") { time.sleepers == 1 }
        #expect(file.looks.withLock { $0.count } == 1)
        time.advance(by: CredentialWatch.pace)
        try await eventually("it looked") { file.looks.withLock { $0.isEmpty } }
        running.cancel()
        _ = await running.result
    }

    @Test func `it records how long a certificate lasts, whether or not it changes`() async throws {
        let metrics = TestMetrics()
        let (watch, _) = watch(ScriptedFile())
        try await withMetricsFactory(metrics) {
            for days in [3.0, 1.0] {
                await watch.look()
                let labels = [("provider", "apns"), ("app", "demo"), ("environment", "production")]
                let gauge = try metrics.expectGauge("heliograph_certificate_expiry_days", labels)
                #expect(gauge.lastValue == days)
                time.advance(by: .seconds(2 * 86_400))
            }
        }
    }
}
