import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct FCMProviderTests {
    @Test func `an accepted message gets an opaque name`() throws {
        let simulator = Fixture.simulator()
        let name = try #require(simulator.send(["token": .string(Fixture.registrationToken)])?.body?["name"]?.string)
        #expect(name.hasPrefix("projects/demo-project/messages/0:"))
        #expect(simulator.log.requests(of: .fcm).first?.response.messageID == name)
        #expect(simulator.log.requests(of: .fcm).first?.response.target == Fixture.registrationToken)
    }

    @Test func `a call without a valid access token is unauthenticated`() {
        let simulator = Fixture.simulator()
        let good = Fixture.send(["token": "t"], to: simulator)
        func status(_ headers: [Header], at: Timestamp = Fixture.now) -> Int? {
            ReceivedResponse(simulator.respondGoogle(Fixture.google(good.path, good.body, headers: headers, at: at)))?
                .status
        }
        #expect(status(good.headers) == 200)
        #expect(status([]) == 401)
        #expect(status([Header("authorization", "Bearer made-up")]) == 401)
        #expect(status(good.headers, at: Fixture.now + .seconds(3600)) == 401)
        simulator.state.accessTokens.revokeAll()
        #expect(status(good.headers) == 401)
    }

    @Test func `an access token is valid for its own project only`() {
        let simulator = Fixture.simulator()
        let foreign = Fixture.send(["token": "t"], project: "other-project", to: simulator)
        func answer(_ project: String) -> ReceivedResponse? {
            ReceivedResponse(
                simulator.respondGoogle(
                    Fixture.google("/v1/projects/\(project)/messages:send", foreign.body, headers: foreign.headers)))
        }
        #expect(answer("other-project")?.status == 200)
        #expect(answer("demo-project")?.body?["error"]?["status"] == "PERMISSION_DENIED")
        #expect(answer("no-project")?.body?["error"]?["status"] == "NOT_FOUND")
        #expect(answer("no-project")?.body?["error"]?["details"] == nil)
    }

    @Test(arguments: ["/v1/projects//messages:send", "/v1/projects/a/b/messages:send", "/fcm/send", "/v1/projects/x"])
    func `an unknown path is not found`(path: String) {
        #expect(ReceivedResponse(Fixture.simulator().respondGoogle(Fixture.google(path, [])))?.status == 404)
    }

    @Test func `a token of another project is a mismatch, and a malformed one is an invalid argument`() {
        let simulator = Fixture.simulator()
        simulator.state.pinnedTokens.register("theirs", .init(project: "other-project"))
        let mismatch = simulator.send(["token": "theirs"])
        #expect(mismatch?.status == 403)
        #expect(mismatch?.body?["error"]?["details"]?.array?.first?["errorCode"] == "SENDER_ID_MISMATCH")
        let malformed = simulator.send(["fid": "a b"])
        let details = malformed?.body?["error"]?["details"]?.array ?? []
        #expect(details.first?["errorCode"] == "INVALID_ARGUMENT")
        #expect(details.last?["fieldViolations"]?.array?.first?["field"] == "message.fid")
    }

    @Test(
        arguments: [
            (FCMScenario.ok, 200, nil), (.unregistered, 404, "UNREGISTERED"), (.badToken, 400, "INVALID_ARGUMENT"),
            (.badPayload, 400, nil), (.senderID, 403, "SENDER_ID_MISMATCH"), (.quota, 429, "QUOTA_EXCEEDED"),
            (.quotaRetryAfter, 429, "QUOTA_EXCEEDED"), (.deviceQuota, 429, "QUOTA_EXCEEDED"),
            (.unavailable, 503, "UNAVAILABLE"), (.internal, 500, "INTERNAL"), (.apnsGone, 400, "INVALID_ARGUMENT"),
            (.apnsAuth, 401, "THIRD_PARTY_AUTH_ERROR"), (.oauth401, 401, nil), (.iam403, 403, nil),
            (.bare404, 404, nil),
            (.html502, 502, nil), (.slow, 200, nil), (.hang, nil, nil), (.reset, nil, nil), (.goAway, nil, nil),
            (.drop, nil, nil),
        ] as [(FCMScenario, Int?, String?)]) func `a token that encodes a scenario gets it`(
            scenario: FCMScenario, status: Int?, code: String?
        )
    {
        let answer = Fixture.simulator().send(["token": .string("sim:\(scenario.rawValue)")])
        #expect(answer?.status == status)
        let details = answer?.body?["error"]?["details"]?.array ?? []
        #expect(details.compactMap { $0["errorCode"]?.string }.first == code)
    }

    @Test func `a token-only registration is unregistered as a FID and valid as a token`() {
        let simulator = Fixture.simulator()
        simulator.state.pinnedTokens.register("abc:def", .init(project: "demo-project", isTokenOnly: true))
        let refused = simulator.send(["fid": "abc:def"])
        #expect(refused?.status == 404)
        #expect(refused?.body?["error"]?["details"]?.array?.first?["errorCode"] == "UNREGISTERED")
        #expect(simulator.send(["token": "abc:def"])?.status == 200)
    }

    @Test func `a FID can be unregistered for a time after its registration`() {
        let simulator = Fixture.simulator()
        simulator.state.pinnedTokens.register(
            "fid", .init(project: "demo-project", fidUnregisteredUntil: Fixture.now + .seconds(600)))
        func status(after seconds: Int) -> Int? {
            let at = Fixture.now + .seconds(seconds)
            let sent = Fixture.send(["fid": "fid"], to: simulator, at: at)
            return ReceivedResponse(
                simulator.respondGoogle(Fixture.google(sent.path, sent.body, headers: sent.headers, at: at)))?.status
        }
        #expect(status(after: 0) == 404)
        #expect(status(after: 599) == 404)
        #expect(status(after: 600) == 200)
    }

    @Test func `every scenario is in the table of the test above`() {
        #expect(FCMScenario.allCases.count == 21)
    }

    @Test func `a scenario with a count ends, and each token has its own count`() {
        let simulator = Fixture.simulator()
        for token in ["sim:UNAVAILABLE:2:a", "sim:UNAVAILABLE:2:b"] {
            let statuses = (1...3).map { _ in simulator.send(["token": .string(token)])?.status }
            #expect(statuses == [503, 503, 200])
        }
        #expect(simulator.send(["token": "sim:NOSUCH"])?.status == 200)
    }

    @Test func `Apple's response is a detail of FCM's`() throws {
        let simulator = Fixture.simulator()
        let details = simulator.send(["token": "sim:APNS_GONE"])?.body?["error"]?["details"]?.array ?? []
        #expect(details.last?["statusCode"] == 410 && details.last?["reason"] == "Unregistered")
        #expect(simulator.send(["token": "sim:QUOTA_RA"])?.headers["retry-after"] == "120")
    }
}
