import Providers
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import PushSending

@Suite(.timeLimit(.minutes(2))) struct ProviderGatewayTests {
    private let time = ManualTime()
    private let mint = ScriptedMinter()

    private static func answer(_ status: Int) -> TransportResult { .success(ProviderResponse(status: status)) }

    private func send(
        over transport: ScriptedTransport, _ consequences: [Int: Consequence] = [:], to target: Push.Target = .sample(),
        delivery: DeliveryPolicy = .atLeastOnce
    ) async -> SendResult {
        let gateway = ProviderGateway(
            codec: StatusCodec(consequences: consequences), credentials: mint.cache(time.clock), transport: transport,
            clock: time.clock)
        return await gateway.send(
            [TargetRequest(of: 0, to: target, delivery: delivery)], of: [gateway.render(.sample())],
            in: .interactive)[0]
    }

    @Test func `given a settled response, then it is the result`() async {
        let transport = ScriptedTransport(Self.answer(200))
        #expect(await send(over: transport) == .settled(.accepted(id: nil)))
        #expect(transport.sent.map(\.authorization) == ["bearer 1"])
    }

    @Test func `given a locally rejected target, then no request is sent`() async {
        let transport = ScriptedTransport(Self.answer(200))
        let answer = await send(over: transport, to: .sample(token: ""))
        #expect(answer == .rejectedLocally(LocalRejection("malformed-token", suspectToken: true)))
        #expect(transport.sent.isEmpty)
        #expect(mint.count == 0)
    }

    @Test func `given a stale credential, then it is replaced once and the request is resent on a new connection`()
        async
    {
        let transport = ScriptedTransport(Self.answer(403), Self.answer(200))
        let answer = await send(over: transport, [403: .reauthenticate(reason: "Expired")])
        #expect(answer == .settled(.accepted(id: nil)))
        #expect(transport.sent.map(\.authorization) == ["bearer 1", "bearer 2"])
        #expect(transport.sent.map(\.generation) == [0, 1])
    }

    @Test func `the credential is replaced before the connections`() async {
        let transport = ScriptedTransport(Self.answer(403), Self.answer(200))
        let generations = Mutex<[Int]>([])
        let cache = mint.cache(time.clock) { generations.withLock { $0.append(transport.generation) } }
        let gateway = ProviderGateway(
            codec: StatusCodec(consequences: [403: .reauthenticate(reason: "Expired")]), credentials: cache,
            transport: transport, clock: time.clock)
        _ = await gateway.send([TargetRequest(of: 0, to: .sample())], of: [BareRendering()], in: .interactive)
        #expect(generations.withLock { $0 } == [0, 0] && transport.generation == 1)
    }

    @Test func `given a rejected new credential, then the route is halted`() async {
        let transport = ScriptedTransport(Self.answer(403))
        let answer = await send(over: transport, [403: .reauthenticate(reason: "Expired")])
        #expect(answer == .halted(reason: "Expired"))
        #expect(transport.sent.count == 2)
    }

    @Test func `an unusable connection is replaced once`() async {
        let transport = ScriptedTransport(Self.answer(403))
        let answer = await send(over: transport, [403: .reconnect(reason: "Unrelated", otherwise: .halts)])
        #expect(answer == .halted(reason: "Unrelated"))
        #expect(transport.sent.map(\.generation) == [0, 1])
        #expect(transport.generation == 2)
        #expect(mint.count == 1)
    }

    @Test func `given a server shutdown, then the connection is replaced and the target backs off`() async {
        let transport = ScriptedTransport(Self.answer(503))
        let answer = await send(over: transport, [503: .reconnectAndBackOff(floor: .seconds(900), reason: "Shutdown")])
        #expect(answer == .backOff(floor: .seconds(900), reason: "Shutdown"))
        #expect(transport.sent.count == 1)
        #expect(transport.generation == 1)
    }

    @Test func `given a lost response, then the same request is resent once at once`() async {
        let transport = ScriptedTransport(.failure(.ambiguous(reason: "connection-lost")), Self.answer(200))
        #expect(await send(over: transport) == .settled(.accepted(id: nil)))
        #expect(transport.sent.count == 2)
        #expect(transport.sent[0].request == transport.sent[1].request)
    }

    @Test(arguments: [
        (TransportError.ambiguous(reason: "reset"), 2, SendResult.backOff(floor: .seconds(10), reason: "reset")),
        (.notProcessed(reason: "goaway"), 1, .backOff(floor: .seconds(10), reason: "goaway")),
        (.deferred(reason: "queue-full"), 1, .deferred(reason: "queue-full")),
        (.timedOut, 1, .backOff(floor: .seconds(10), reason: "timed-out")),
        (.unreachable(reason: "connect-failed"), 1, .unreachable(reason: "connect-failed")),
    ])
    func `given a repeated transport error, then the target is retried later`(
        error: TransportError, requests: Int, answer: SendResult
    ) async {
        let transport = ScriptedTransport(.failure(error))
        #expect(await send(over: transport) == answer)
        #expect(transport.sent.count == requests)
    }

    @Test(arguments: [TransportError.ambiguous(reason: "reset"), .timedOut])
    func `given at-most-once delivery and a lost response, then the outcome is unknown`(error: TransportError) async {
        let transport = ScriptedTransport(.failure(error), Self.answer(200))
        guard case .settled(.unknown) = await send(over: transport, delivery: .atMostOnce) else {
            Issue.record("not settled as unknown")
            return
        }
        #expect(transport.sent.count == 1)
    }

    @Test func `given at-most-once delivery and an unprocessed request, then it is retried`() async {
        let transport = ScriptedTransport(.failure(.notProcessed(reason: "goaway")))
        let answer = await send(over: transport, delivery: .atMostOnce)
        #expect(answer == .backOff(floor: .seconds(10), reason: "goaway"))
    }

    @Test func `a halted route probes on a new connection`() async {
        let transport = ScriptedTransport(Self.answer(400))
        #expect(
            await send(over: transport, [400: .halt(reason: "TopicDisallowed")]) == .halted(reason: "TopicDisallowed"))
        #expect(transport.sent.count == 1)
        #expect(transport.generation == 1)
    }

    @Test func `given no credential, then nothing is sent and the error decides the result`() async {
        let transport = ScriptedTransport(Self.answer(200))
        mint.fail(with: .refused(reason: "key.p8: is not a key"))
        #expect(await send(over: transport) == .halted(reason: "key.p8: is not a key"))
        mint.fail(with: .unavailable(reason: "token endpoint away"))
        #expect(await send(over: transport) == .unreachable(reason: "token endpoint away"))
        #expect(transport.sent.isEmpty)
    }

    @Test func `each request gets its own result, and only failed ones are resent`() async {
        let transport = ScriptedTransport(
            Self.answer(200), Self.answer(403), .failure(.ambiguous(reason: "reset")), Self.answer(500),
            Self.answer(200))
        let gateway = ProviderGateway(
            codec: StatusCodec(consequences: [
                403: .reauthenticate(reason: "Expired"), 500: .backOff(floor: .seconds(900), reason: "Internal"),
            ]), credentials: mint.cache(time.clock), transport: transport, clock: time.clock)
        let tokens = ["a", "b", "", "c", "d"]
        let answers = await gateway.send(
            tokens.map { TargetRequest(of: 0, to: .sample(token: $0)) }, of: [BareRendering()], in: .interactive)
        #expect(
            answers == [
                .settled(.accepted(id: nil)), .settled(.accepted(id: nil)),
                .rejectedLocally(LocalRejection("malformed-token", suspectToken: true)), .settled(.accepted(id: nil)),
                .backOff(floor: .seconds(900), reason: "Internal"),
            ])
        #expect(transport.sent.map(\.request.path) == ["/a", "/b", "/c", "/d", "/b", "/c"])
        #expect(transport.sent.suffix(2).allSatisfy { $0.authorization == "bearer 2" && $0.generation == 1 })
    }

    @Test func `given replaced connections, then waiting requests are resent with the new credential, up to a limit`()
        async
    {
        let cache = mint.cache(time.clock)
        let passing = ScriptedTransport(.failure(.outdated), .failure(.outdated), Self.answer(200)) { cache.renew() }
        let gateway = ProviderGateway(
            codec: StatusCodec(consequences: [:]), credentials: cache, transport: passing, clock: time.clock)
        let answers = await gateway.send([TargetRequest(of: 0, to: .sample())], of: [BareRendering()], in: .interactive)
        #expect(answers == [.settled(.accepted(id: nil))])
        #expect(passing.sent.map(\.authorization) == ["bearer 1", "bearer 2", "bearer 3"])
        #expect(passing.generation == 0)
        let restless = ScriptedTransport(.failure(.outdated))
        #expect(await send(over: restless) == .deferred(reason: "connections-retired"))
        #expect(restless.sent.count == 1 + ImmediateRetries.maxConnectionWaits)
    }

    @Test func `a withdrawn request is reported as withdrawn`() async {
        let transport = ScriptedTransport(.failure(.withdrawn))
        #expect(await send(over: transport) == .withdrawn)
    }
}
