import HTTP2
import HTTP2Server
import Messaging
import Providers
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import WebPushSender

/// Requests to push services over TLS and HTTP/2, and the consequences of their answers.
@Suite(.timeLimit(.minutes(2))) struct PushServiceTests {
    typealias Sender = WebPushSenderUnderTest

    @Test func `a browser gets an encrypted message, signed with the app's key`() async throws {
        try await Sender.run { _ in
            HTTP2ServerStep.answer(201)
        } _: { sender, services in
            let sent = try await sender.send(to: ["\(services[0].url)/push/1?v=2"])
            #expect(sent.answers == [.accepted(id: nil)] && sent.disposition == .done)
            let request = try #require(services[0].requests.first)
            #expect(request.path == "/push/1?v=2" && request.method == "POST")
            #expect(request.headers["content-encoding"] == "aes128gcm" && request.headers["urgency"] == "high")
            #expect(request.headers["authorization"]?.hasPrefix("vapid t=") == true)
            // Each message is padded to the common size.
            #expect(request.body.count == WebPushEncryption.commonMessage + 103)
        }
    }

    @Test(arguments: [
        (404, Outcome.Answer.unregistered(since: nil, reason: "HTTP 404")),
        (410, .unregistered(since: nil, reason: "HTTP 410")), (413, .rejected(reason: "HTTP 413", suspectToken: false)),
        (400, .rejected(reason: "HTTP 400", suspectToken: false)),
    ])
    func `an answer about one subscription settles it`(status: Int, expected: Outcome.Answer) async throws {
        try await Sender.run { _ in
            HTTP2ServerStep.answer(status)
        } _: { sender, services in
            let sent = try await sender.send(to: ["\(services[0].url)/1"])
            #expect(sent.answers == [expected] && services[0].requests.count == 1)
        }
    }

    @Test func `a redirect is not followed`() async throws {
        try await Sender.run(services: 2) { _ in
            HTTP2ServerStep.answer(307, [("location", "https://localhost:1/")])
        } _: {
            sender, services in
            let sent = try await sender.send(to: ["\(services[0].url)/1"])
            #expect(sent.answers == [.rejected(reason: "HTTP 307", suspectToken: true)])
            #expect(services[0].requests.count == 1 && sender.pool.count == 1)
        }
    }

    @Test func `Retry-After pauses its push service only`() async throws {
        try await Sender.run(services: 2) { request in
            request.path == "/busy"
                ? HTTP2ServerStep.answer(429, [("retry-after", "120")]) : HTTP2ServerStep.answer(201)
        } _: { sender, services in
            let first = try await sender.send(to: ["\(services[0].url)/busy", "\(services[1].url)/1"])
            #expect(first.answers == [nil, .accepted(id: nil)])
            guard case .retry(let wait, _) = first.disposition else {
                Issue.record("\(first.disposition)")
                return
            }
            #expect(wait >= .seconds(120))
            // The paused one gets no request, and the other one does.
            _ = try await sender.send(to: ["\(services[0].url)/2", "\(services[1].url)/2"])
            #expect(services.map(\.requests.count) == [1, 2] && sender.trouble == nil)
            sender.time.advance(by: .seconds(121))
            #expect(try await sender.send(to: ["\(services[0].url)/3"]).answers == [.accepted(id: nil)])
        }
    }

    @Test(arguments: [401, 403])
    func `a push service that refuses the key is halted, and the app's other ones go on`(status: Int) async throws {
        try await Sender.run(services: 2) { request in
            HTTP2ServerStep.answer(request.path == "/no" ? status : 201)
        } _: { sender, services in
            let (no, yes) = ("\(services[0].url)/no", "\(services[1].url)/1")
            let first = try await sender.send(to: [no, yes, no])
            #expect(first.answers == [nil, .accepted(id: nil), nil])
            #expect(sender.trouble == nil && sender.pool.pausedCount == 1)
            let count = services[0].requests.count
            _ = try await sender.send(to: [no, yes])
            #expect(services[0].requests.count == count)
            // After the pause, one push probes.
            sender.time.advance(by: .seconds(31))
            let answers = try await sender.send(to: ["\(services[0].url)/1", "\(services[0].url)/2"]).answers
            #expect(answers == [.accepted(id: nil), .accepted(id: nil)] && sender.pool.pausedCount == 0)
        }
    }

    @Test func `a push service that refuses everything is given up on after the horizon`() async throws {
        try await Sender.run { _ in
            HTTP2ServerStep.answer(403)
        } _: { sender, services in
            _ = try await sender.send(to: ["\(services[0].url)/1"])
            let state = Outcome.Answer.throttled(reason: "HTTP 403")
            let last = try await sender.send(to: ["\(services[0].url)/1"], attempt: 40)
            #expect(last.answers == [state] || last.answers == [nil])
        }
    }

    @Test func `an unreachable push service pauses, and the app's route stays open`() async throws {
        try await Sender.run { _ in
            HTTP2ServerStep.answer(201)
        } _: { sender, services in
            let closed = "https://localhost:\(try FreePort.any())/1"
            let sent = try await sender.send(to: [closed, "\(services[0].url)/1"])
            #expect(sent.answers == [nil, .accepted(id: nil)])
            #expect(sender.trouble == nil && sender.pool.pausedCount == 1)
        }
    }

    @Test func `a wrong key halts the app's route, and a corrected file opens it`() async throws {
        let sender = try await WebPushSenderUnderTest(key: "not a key")
        let service = try await FakeProvider.start { _ in HTTP2ServerStep.answer(201) }
        let first = try await sender.send(to: ["\(service.url)/1"])
        #expect(first.answers == [nil] && service.requests.isEmpty)
        #expect(sender.trouble?.reason.contains("the VAPID private key") == true)
        try sender.folder.write("demo.vapid", VAPIDKey().privateKey)
        await sender.watch.reload()
        #expect(try await sender.send(to: ["\(service.url)/1"]).answers == [.accepted(id: nil)])
        await sender.stop()
        await service.stop()
    }

    @Test func `a token that is no subscription is rejected without a request`() async throws {
        let results = try await WebPushSenderUnderTest().gateways.byRoute.values.first!.send(
            [TargetRequest(of: 0, to: .sample(token: "{}"))],
            of: [], in: .interactive)
        #expect(results == [.rejectedLocally(LocalRejection("malformed-subscription", suspectToken: true))])
    }
}
