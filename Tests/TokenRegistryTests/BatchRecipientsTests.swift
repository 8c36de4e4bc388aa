import PushProtocol
import Testing

@testable import RegistryStore

@Suite struct BatchRecipientsTests {
    @Test func `a repeated user is looked up once, and one name in two apps is two users`() {
        let other = AppID(rawValue: "other")!
        var elsewhere = PushPlanTests.notification(to: ["b", "a"])
        elsewhere.app = other
        let recipients = BatchRecipients(of: [
            PushPlanTests.notification(to: ["a", "b", "a"]), PushPlanTests.notification(to: []),
            PushPlanTests.notification(to: ["c", "b"]), elsewhere,
        ])
        let users = ["a", "b", "c"].map { AppUser(app: PushPlanTests.app, user: PushPlanTests.user($0)) }
        let others = ["b", "a"].map { AppUser(app: other, user: PushPlanTests.user($0)) }
        #expect(recipients.users == users + others)
        #expect(recipients.places == [[0, 1, 0], [], [2, 1], [3, 4]])
    }
}
