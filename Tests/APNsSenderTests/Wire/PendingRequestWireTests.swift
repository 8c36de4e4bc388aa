import FoundationEssentials
import HTTP2
import HTTP2Server
import Messaging
import PushProtocol
import PushSending
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import APNsSender

/// Requests that wait for a stream are checked again before they are sent.
@Suite(.timeLimit(.minutes(2))) struct PendingRequestWireTests {
    private let catalogs: AppCatalogs
    private let revocations = Revocations(provider: .apns, capacity: 1000, logger: .silent)

    private final class Flag: Sendable {
        let isSet = Mutex(false)
    }

    init() throws { catalogs = try AppCatalogs() }

    /// Sends `first`, which occupies the only stream, then `second`. Calls `change` while `second` waits. Returns the
    /// result of `second` and the requested paths.
    private func outcome(
        of second: Push, after first: Push = .sample(targets: [.sample(token: "aaaa")]),
        time: VirtualTime = .init(movesTimeOfDay: true),
        _ change: () throws -> Void
    ) async throws -> (SenderUnderTest.Result, paths: [String]) {
        let gate = Gate()
        let apns = try await ScriptedAPNs.start(settings: HTTP2ServerSettings(maximumConcurrentStreams: 1)) {
            request, _ in
            if request.path == "/3/device/aaaa" { await gate.pass() }
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(
            try catalogs.key(), connections: 1, time: time, revocations: revocations)
        async let before = sender.send(first)
        try await eventually("the first has the stream") { apns.requests.count == 1 }
        async let result = sender.send(second)
        try await eventually("the second waits") {
            sender.clients.map(\.statistics.waiting).reduce(0, +) == second.targets.count
        }
        try change()
        gate.open()
        #expect(try await before.answers.map(\.disposition) == [.accepted])
        let after = try await result
        await sender.stop()
        let paths = apns.requests.map(\.path)
        await apns.server.shutdown()
        return (after, paths)
    }

    @Test func `given a push that waits for a stream, when its user loses the device, then it is not sent`()
        async throws
    {
        let lost = Push.Target.sample(token: "bbbb"), kept = Push.Target.sample(token: "cccc")
        let (result, paths) = try await outcome(of: .sample(targets: [lost, kept])) {
            revocations.add([
                try DeviceEvent.loss(of: lost.device, registeredAt: lost.registeredAt).wireBody()
            ])
        }
        #expect(result.answers.first == .skipped(reason: "revoked"))
        #expect(result.answers.last?.disposition == .accepted)
        #expect(result.disposition == .done)
        #expect(paths == ["/3/device/aaaa", "/3/device/cccc"])
    }

    @Test func `given a push that waits for a stream, when another user's device is revoked, then it is sent`()
        async throws
    {
        let target = Push.Target.sample(token: "bbbb")
        let (result, paths) = try await outcome(of: .sample(targets: [target])) {
            revocations.add([
                try DeviceEvent.loss(of: UUID(), registeredAt: .sample).wireBody(),
                // A registration older than the push's.
                try DeviceEvent.loss(of: target.device, registeredAt: target.registeredAt + .milliseconds(-1))
                    .wireBody(),
            ])
        }
        #expect(result.answers.map(\.disposition) == [.accepted])
        #expect(paths == ["/3/device/aaaa", "/3/device/bbbb"])
    }

    @Test func `given a push that waits for a stream, when it expires, then it is not sent`()
        async throws
    {
        let time = VirtualTime(movesTimeOfDay: true)
        let push = Push.sample(expiresAt: time.now + .seconds(4), targets: [.sample(token: "bbbb")])
        let (result, paths) = try await outcome(of: push, time: time) { time.advance(by: .seconds(5)) }
        #expect(result.answers == [.expired])
        #expect(result.disposition == .done)
        #expect(paths == ["/3/device/aaaa"])
    }

    @Test func `given a push older than all known revocations, then it is skipped with a reason`() async throws {
        let apns = try await ScriptedAPNs.start { _, _ in [.respond(status: 200)] }
        let sender = try await apns.sender(try catalogs.key(), revocations: revocations)
        let retention = StreamName.senderRevocations.retention
        let old = try await sender.send(.sample(), publishedAt: sender.time.now - retention)
        #expect(old.answers == [.skipped(reason: "older-than-revocations")])
        #expect(old.disposition == .done)
        #expect(apns.requests.isEmpty)
        let known = try await sender.send(.sample(), publishedAt: sender.time.now - retention + .seconds(2 * 3600))
        #expect(known.answers.map(\.disposition) == [.accepted])
        // Revocations since the process started are kept for its lifetime.
        let published = sender.time.now
        sender.time.advance(by: retention * 2)
        #expect(try await sender.send(.sample(), publishedAt: published).answers.map(\.disposition) == [.accepted])
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test(arguments: [DeliveryPolicy.atMostOnce, .atLeastOnce])
    func `given a request in flight, when its push is redelivered, then both get the same outcome`(
        delivery: DeliveryPolicy
    ) async throws {
        let gate = Gate()
        let apns = try await ScriptedAPNs.start { _, _ in
            await gate.pass()
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key())
        let push = Push.sample(delivery: delivery)
        async let first = sender.send(push)
        try await eventually("it is in flight") { apns.requests.count == 1 }
        let begun = Flag()
        async let second = {
            begun.isSet.withLock { $0 = true }
            return try await sender.send(push, redelivered: true)
        }()
        try await eventually("it comes again") { begun.isSet.withLock { $0 } }
        gate.open()
        let (one, other) = try await (first, second)
        #expect(one.answers.map(\.disposition) == [.accepted])
        #expect(one.outcomes == other.outcomes)
        #expect(apns.requests.count == 1)
        await sender.stop()
        await apns.server.shutdown()
    }
}
