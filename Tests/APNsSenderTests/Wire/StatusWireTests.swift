import FoundationEssentials
import HTTP2
import HTTP2Server
import Messaging
import PushProtocol
import PushSending
import ServiceKit
import Testing
import TestSupport

@testable import APNsSender

/// A received status counts, even if the rest of the response is lost.
@Suite(.timeLimit(.minutes(2))) struct StatusWireTests {
    private let catalogs: AppCatalogs

    init() throws { catalogs = try AppCatalogs() }

    /// Sends one push that is answered with `steps`. Returns the result and the number of requests.
    private func outcome(_ steps: [HTTP2ServerStep], _ push: Push = .sample()) async throws -> (
        SenderUnderTest.Result, requests: Int
    ) {
        let apns = try await ScriptedAPNs.start { _, _ in steps }
        let sender = try await apns.sender(try catalogs.key())
        let result = try await sender.send(push)
        await sender.stop()
        let requests = apns.requests.count
        await apns.server.shutdown()
        return (result, requests)
    }

    private static let long = Array(repeating: UInt8(ascii: " "), count: 65 * 1024)

    @Test(
        arguments: [
            [.respond(status: 200, body: long)],
            [.headers(status: 200), .data([1], last: false), .reset(.internalError)],
            [.headers(status: 200), .data([1], last: false), .wait(.milliseconds(100)), .dropConnection],
        ] as [[HTTP2ServerStep]])
    func `given a 200, when its body is too long or truncated, then the push is accepted and not sent again`(
        steps: [HTTP2ServerStep]
    ) async throws {
        let (result, requests) = try await outcome(steps)
        #expect(result.answers.map(\.disposition) == [.accepted])
        #expect(result.disposition == .done)
        #expect(requests == 1)
    }

    @Test func `given an error status with a body that is too long, then the status decides`() async throws {
        let (gone, _) = try await outcome([.respond(status: 410, body: Self.long)])
        #expect(gone.answers == [.unregistered(since: nil, reason: "HTTP 410")])
        let (busy, requests) = try await outcome([.respond(status: 503, body: Self.long)])
        #expect(busy.answers.isEmpty && busy.retry == .seconds(900))
        #expect(requests == 1)
    }

    @Test
    func `given a 410 with a time in 1970, then the device is unregistered without a time, and the reason says so`()
        async throws
    {
        let body = Array(#"{"reason":"Unregistered","timestamp":1767225000}"#.utf8)
        let (result, _) = try await outcome([.respond(status: 410, body: body)])
        #expect(result.answers == [.unregistered(since: nil, reason: "Unregistered-at-no-time")])
    }

    @Test func `given a short retry-after, then the documented waits apply`() async throws {
        let soon = [HTTP2Header(name: "retry-after", value: "1")]
        for (status, reason, wait) in [(429, "TooManyRequests", 120), (503, "ServiceUnavailable", 900)] {
            let body = Array(#"{"reason":"\#(reason)"}"#.utf8)
            let (result, _) = try await outcome([.respond(status: status, headers: soon, body: body)])
            #expect(result.retry == .seconds(wait), "\(status)")
        }
    }

    @Test func `given a stream that is always refused, then four requests are sent and the attempt counts`()
        async throws
    {
        let (result, requests) = try await outcome([.reset(.refusedStream)])
        #expect(requests == 4)
        #expect(result.answers.isEmpty && result.retry == .seconds(30))
    }

    @Test func `given a collapse id of 64 bytes of UTF-8, then it is sent unchanged`() async throws {
        let id = String(repeating: "é", count: 32)
        let apns = try await ScriptedAPNs.start { _, _ in [.respond(status: 200)] }
        let sender = try await apns.sender(try catalogs.key())
        let headers = Content(title: "T", apns: APNsOverride(headers: ["apns-collapse-id": id]))
        for content in [headers, Content(title: "T", collapseKey: id)] {
            #expect(try await sender.send(.sample(content)).answers.map(\.disposition) == [.accepted])
        }
        #expect(apns.requests.map { $0.headers["apns-collapse-id"] } == [id, id])
        for wrong in ["a\nb", " a", "a ", String(repeating: "é", count: 33)] {
            let refused = try await sender.send(.sample(Content(title: "T", collapseKey: wrong)))
            guard case .rejected(let reason, suspectToken: false)? = refused.answers.first else {
                Issue.record("\(refused.answers)")
                continue
            }
            #expect(reason.hasPrefix("collapse-id-not-"))
        }
        #expect(apns.requests.count == 2)
        await sender.stop()
        await apns.server.shutdown()
    }

    /// APNs accepts a provider token whose `iat` is not in the future and at most an hour old.
    @Test(arguments: [Duration.seconds(2 * 3600), .seconds(-2 * 3600)])
    func `given a provider token of a wrong clock, when the clock is corrected, then one new token opens the route`(
        error: Duration
    ) async throws {
        let start = Timestamp.now
        let time = VirtualTime(start: start + error, movesTimeOfDay: true)
        let apns = try await ScriptedAPNs.start { request, _ in
            let issued = Self.issuedAt(request) ?? Timestamp(milliseconds: 0)
            // No test takes an hour.
            if issued > start + .seconds(1800) {
                return [.respond(status: 403, body: Array(#"{"reason":"InvalidProviderToken"}"#.utf8))]
            }
            if issued < start - .seconds(3600) {
                return [.respond(status: 403, body: Array(#"{"reason":"ExpiredProviderToken"}"#.utf8))]
            }
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key(), time: time)
        #expect(try await sender.send(.sample()).held != nil)
        #expect(sender.trouble() != nil)
        time.correct(by: .zero - error)
        time.advance(by: .seconds(31))
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(sender.trouble() == nil)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(Set(apns.requests.map { $0.headers["authorization"] }).count == 2)
        await sender.stop()
        await apns.server.shutdown()
    }

    private static func issuedAt(_ request: HTTP2ServerRequest) -> Timestamp? {
        let claims = request.headers["authorization"]?.split(separator: ".").dropFirst().first.map(String.init)
        guard var text = claims?.replacing("-", with: "+").replacing("_", with: "/") else { return nil }
        while text.utf8.count % 4 != 0 { text += "=" }
        guard let data = Data(base64Encoded: text),
            let json = try? WireCoding.decode(JSONValue.self, from: Array(data))
        else { return nil }
        return json["iat"]?.int.map { Timestamp(milliseconds: $0 * 1000) }
    }
}
