import PushProtocol
import Synchronization
import TestSupport
import Testing
@testable import PushSending

@Suite(.timeLimit(.minutes(2))) struct ProviderGatewayTests {
    private let time = ManualTime()
    private let mint = ScriptedMint()

    private static func answer(_ status: Int) -> TransportAnswer { .success(ProviderResponse(status: status)) }

    private func send(
        over transport: ScriptedTransport, _ consequences: [Int: Consequence] = [:], to target: Push.Target = .sample(),
        delivery: DeliveryPolicy = .atLeastOnce
    ) async -> GatewayAnswer {
        let gateway = ProviderGateway(
            wire: StatusWire(consequences: consequences), credentials: mint.cache(time.clock), transport: transport,
            clock: time.clock)
        return await gateway.send(
            [Copy(of: 0, to: target, delivery: delivery)], of: [gateway.render(.sample())], in: .interactive)[0]
    }

    @Test func `what the provider settles is the answer`() async {
        let transport = ScriptedTransport(Self.answer(200))
        #expect(await send(over: transport) == .settled(.accepted(id: nil)))
        #expect(transport.sent.map(\.authorization) == ["bearer 1"])
    }

    @Test func `what is rejected here never reaches the wire`() async {
        let transport = ScriptedTransport(Self.answer(200))
        let answer = await send(over: transport, to: .sample(token: ""))
        #expect(answer == .refusedHere(LocalRejection("malformed-token", suspectToken: true)))
        #expect(transport.sent.isEmpty)
        #expect(mint.count == 0)
    }

    @Test func `a stale credential is replaced once, on a new connection, and the request sent again`() async {
        let transport = ScriptedTransport(Self.answer(403), Self.answer(200))
        let answer = await send(over: transport, [403: .reauthenticate(reason: "Expired")])
        #expect(answer == .settled(.accepted(id: nil)))
        #expect(transport.sent.map(\.authorization) == ["bearer 1", "bearer 2"])
        #expect(transport.sent.map(\.generation) == [0, 1])
    }

    /// Who waits for the old connections asks for a credential when they are gone.
    @Test func `there is a new credential before the connections are replaced`() async {
        let transport = ScriptedTransport(Self.answer(403), Self.answer(200))
        let generations = Mutex<[Int]>([])
        let cache = mint.cache(time.clock) { generations.withLock { $0.append(transport.generation) } }
        let gateway = ProviderGateway(
            wire: StatusWire(consequences: [403: .reauthenticate(reason: "Expired")]), credentials: cache,
            transport: transport, clock: time.clock)
        _ = await gateway.send([Copy(of: 0, to: .sample())], of: [BareRendering()], in: .interactive)
        #expect(generations.withLock { $0 } == [0, 0] && transport.generation == 1)
    }

    @Test func `a fresh credential that is refused too halts the lane`() async {
        let transport = ScriptedTransport(Self.answer(403))
        let answer = await send(over: transport, [403: .reauthenticate(reason: "Expired")])
        #expect(answer == .halted(reason: "Expired"))
        #expect(transport.sent.count == 2)
    }

    @Test func `a useless connection is replaced once`() async {
        let transport = ScriptedTransport(Self.answer(403))
        let answer = await send(over: transport, [403: .reconnect(reason: "Unrelated", otherwise: .halts)])
        #expect(answer == .halted(reason: "Unrelated"))
        #expect(transport.sent.map(\.generation) == [0, 1])
        #expect(transport.generation == 2)
        #expect(mint.count == 1)
    }

    @Test func `a server that goes away is left, and the target waits for the floor`() async {
        let transport = ScriptedTransport(Self.answer(503))
        let answer = await send(over: transport, [503: .leave(floor: .seconds(900), reason: "Shutdown")])
        #expect(answer == .backOff(floor: .seconds(900), reason: "Shutdown"))
        #expect(transport.sent.count == 1)
        #expect(transport.generation == 1)
    }

    @Test func `an answer that got lost is asked for once more at once, with the same request`() async {
        let transport = ScriptedTransport(.failure(.ambiguous(reason: "connection-lost")), Self.answer(200))
        #expect(await send(over: transport) == .settled(.accepted(id: nil)))
        #expect(transport.sent.count == 2)
        #expect(transport.sent[0].request == transport.sent[1].request)
    }

    @Test(arguments: [
        (TransportError.ambiguous(reason: "reset"), 2, GatewayAnswer.backOff(floor: .seconds(10), reason: "reset")),
        (.notProcessed(reason: "goaway"), 1, .backOff(floor: .seconds(10), reason: "goaway")),
        (.deferred(reason: "queue-full"), 1, .deferred(reason: "queue-full")),
        (.timedOut, 1, .backOff(floor: .seconds(10), reason: "timed-out")),
        (.unreachable(reason: "connect-failed"), 1, .unreachable(reason: "connect-failed")),
    ])
    func `what stays lost is tried again later`(error: TransportError, requests: Int, answer: GatewayAnswer) async {
        let transport = ScriptedTransport(.failure(error))
        #expect(await send(over: transport) == answer)
        #expect(transport.sent.count == requests)
    }

    @Test(arguments: [TransportError.ambiguous(reason: "reset"), .timedOut])
    func `at most once, what may have been taken is over`(error: TransportError) async {
        let transport = ScriptedTransport(.failure(error), Self.answer(200))
        guard case .settled(.unknown) = await send(over: transport, delivery: .atMostOnce) else {
            Issue.record("not settled as unknown")
            return
        }
        #expect(transport.sent.count == 1)
    }

    @Test func `at most once, what was certainly not taken is tried again`() async {
        let transport = ScriptedTransport(.failure(.notProcessed(reason: "goaway")))
        let answer = await send(over: transport, delivery: .atMostOnce)
        #expect(answer == .backOff(floor: .seconds(10), reason: "goaway"))
    }

    @Test func `a halted lane probes on another connection, where what was mended takes effect`() async {
        let transport = ScriptedTransport(Self.answer(400))
        #expect(
            await send(over: transport, [400: .halt(reason: "TopicDisallowed")]) == .halted(reason: "TopicDisallowed"))
        #expect(transport.sent.count == 1)
        #expect(transport.generation == 1)
    }

    @Test func `without a credential nothing is sent, and the reason decides`() async {
        let transport = ScriptedTransport(Self.answer(200))
        mint.fail(with: .refused(reason: "key.p8: is not a key"))
        #expect(await send(over: transport) == .halted(reason: "key.p8: is not a key"))
        mint.fail(with: .unavailable(reason: "token endpoint away"))
        #expect(await send(over: transport) == .unreachable(reason: "token endpoint away"))
        #expect(transport.sent.isEmpty)
    }

    @Test func `each copy gets its own answer, and only those that need it are sent again`() async {
        let transport = ScriptedTransport(
            Self.answer(200), Self.answer(403), .failure(.ambiguous(reason: "reset")), Self.answer(500),
            Self.answer(200))
        let gateway = ProviderGateway(
            wire: StatusWire(consequences: [
                403: .reauthenticate(reason: "Expired"), 500: .backOff(floor: .seconds(900), reason: "Internal"),
            ]), credentials: mint.cache(time.clock), transport: transport, clock: time.clock)
        let tokens = ["a", "b", "", "c", "d"]
        let answers = await gateway.send(
            tokens.map { Copy(of: 0, to: .sample(token: $0)) }, of: [BareRendering()], in: .interactive)
        #expect(
            answers == [
                .settled(.accepted(id: nil)), .settled(.accepted(id: nil)),
                .refusedHere(LocalRejection("malformed-token", suspectToken: true)), .settled(.accepted(id: nil)),
                .backOff(floor: .seconds(900), reason: "Internal"),
            ])
        #expect(transport.sent.map(\.request.path) == ["/a", "/b", "/c", "/d", "/b", "/c"])
        #expect(transport.sent.suffix(2).allSatisfy { $0.authorization == "bearer 2" && $0.generation == 1 })
    }

    @Test func `what waited for connections that were replaced is sent with the credential of now, a few times`() async
    {
        let cache = mint.cache(time.clock)
        let passing = ScriptedTransport(.failure(.outdated), .failure(.outdated), Self.answer(200)) { cache.renew() }
        let gateway = ProviderGateway(
            wire: StatusWire(consequences: [:]), credentials: cache, transport: passing, clock: time.clock)
        let answers = await gateway.send([Copy(of: 0, to: .sample())], of: [BareRendering()], in: .interactive)
        #expect(answers == [.settled(.accepted(id: nil))])
        #expect(passing.sent.map(\.authorization) == ["bearer 1", "bearer 2", "bearer 3"])
        #expect(passing.generation == 0)
        let restless = ScriptedTransport(.failure(.outdated))
        #expect(await send(over: restless) == .deferred(reason: "connections-retired"))
        #expect(restless.sent.count == 1 + Remedies.waitsForConnections)
    }

    @Test func `what was withdrawn is told as not sent`() async {
        let transport = ScriptedTransport(.failure(.withdrawn))
        #expect(await send(over: transport) == .withdrawn)
    }
}
