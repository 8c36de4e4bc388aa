import FoundationEssentials
import PushProtocol
import Testing

@testable import RegistryStore

/// The choice between an installation's FID and its registration token, and the fallback.
@Suite struct FIDPreferenceTests {
    private func registration(_ kind: RegistrationKind, _ token: String, day: Int = 0) -> Registration {
        var one = PushPlanTests.registration("a", token, .fcm)
        (one.kind, one.installation) = (kind, InstallationID(rawValue: "phone"))
        one.registeredAt = PushPlanTests.now + .seconds(day * 86_400)
        return one
    }

    private func target(_ registrations: [Registration], _ fids: FIDPreference = FIDPreference()) -> Push.Target? {
        let notification = PushPlanTests.notification(to: ["a"])
        let plan = PushPlan(notification, devices: [registrations], now: PushPlanTests.now, fids: fids)
        let targets = plan.pushes.flatMap(\.targets)
        return targets.count == 1 ? targets[0] : nil
    }

    @Test func `a FID carries the token beside it as its fallback`() throws {
        let target = try #require(self.target([registration(.fcmToken, "abc:t"), registration(.fid, "f")]))
        #expect(target.token.secret == "f" && target.address == .fid)
        #expect(target.fallback?.secret == "abc:t")
    }

    @Test func `a FID without a token, and a token without a FID, have no fallback`() throws {
        #expect(try #require(target([registration(.fid, "f")])).fallback == nil)
        let token = try #require(target([registration(.fcmToken, "abc:t")]))
        #expect(token.fallback == nil && token.address == nil)
    }

    @Test func `with a suspected FID, the token is used`() throws {
        var fid = registration(.fid, "f")
        fid.isSuspected = true
        let target = try #require(self.target([registration(.fcmToken, "abc:t"), fid]))
        #expect(target.token.secret == "abc:t" && target.address == nil && target.fallback == nil)
        #expect(try #require(self.target([fid])).address == .fid, "without a token, the FID is used")
    }

    @Test func `in a halted version tokens are used, in others FIDs`() throws {
        var fid = registration(.fid, "f")
        let token = registration(.fcmToken, "abc:t")
        let fids = FIDPreference(halted: [.init(app: PushPlanTests.app, version: "4.2")])
        for (version, isUsed) in [("4.2", false), ("4.3", true), (nil, true)] {
            fid.appVersion = version
            #expect((try #require(target([token, fid], fids)).address == .fid) == isUsed, "\(version ?? "none")")
        }
        fid.appVersion = nil
        let unknown = FIDPreference(halted: [.init(app: PushPlanTests.app, version: "")])
        #expect(try #require(target([token, fid], unknown)).address == nil)
    }

    @Test func `#16429: a registration token sent as a FID is tried as both`() throws {
        var fid = registration(.fid, "abc:APA91bOld")
        let tried = try #require(target([fid]))
        #expect(tried.address == .fid && tried.fallback == tried.token)
        fid.isSuspected = true
        let suspected = try #require(target([fid]))
        #expect(suspected.address == nil && suspected.fallback == nil)
    }

    @Test func `only established registrations have an owner hash`() throws {
        var one = registration(.fcmToken, "abc:t")
        #expect(try #require(target([one])).owner == nil)
        one.isEstablished = true
        #expect(try #require(target([one])).owner == UserHash(UserID(rawValue: "a")!))
    }

    @Test func `a cohort is halted by a share of its FIDs, not by a few`() {
        #expect(!FIDCohortRule.isHalted(suspected: 4, known: 4))
        #expect(FIDCohortRule.isHalted(suspected: 5, known: 5))
        #expect(FIDCohortRule.isHalted(suspected: 5, known: 99))
        #expect(!FIDCohortRule.isHalted(suspected: 5, known: 100))
        #expect(FIDCohortRule.isHalted(suspected: 50, known: 999))
    }
}
