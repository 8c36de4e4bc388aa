import ArgumentParser
import DecisionLog
import Foundation
import PushProtocol
import Testing

@testable import Pushctl

/// `pushctl revoke`: its arguments and its text.
@Suite struct RevokeCommandTests {
    static let id = "5b0c4a52-93d1-5b0e-8f55-0d6c1f7a2e90"

    private func request(_ arguments: String) throws -> RevocationRequest {
        let words = arguments.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        return try RevokeCommand.parse(["--app", "test"] + words).request()
    }

    @Test func `every option is read`() throws {
        let app = AppID(rawValue: "test")!
        #expect(try request("--event e/1") == RevocationRequest(app: app, target: .event("e/1")))
        #expect(
            try request("--notification \(Self.id) --user 7 --inbox keep --reason late")
                == RevocationRequest(
                    app: app, target: .notification(UUID(uuidString: Self.id)!), user: UserID(rawValue: "7"),
                    inbox: .keep, reason: "late"))
        #expect(try request("--event e --ahead").isAhead)
        #expect(try RevokeCommand.parse(["--app", "test", "--event", "e", "--dry-run"]).dryRun)
    }

    @Test(arguments: [
        "--user 7", "--event e --notification \(id)", "--notification x", "--event ", "--event e --reason ",
        "--notification \(id) --ahead", "--event e --user ",
    ])
    func `a wrong option is a usage error`(arguments: String) {
        let error = #expect(throws: CommandError.self) { try request(arguments) }
        #expect(error?.status == .usage)
    }

    @Test func `the lines have the state, the reason and the next step for campaigns`() {
        var revocation = Revocation(
            id: UUID(), app: "test", target: .event("e"), user: "7", inbox: .remove, source: .operator,
            requestedBy: "desk", reason: "wrong text", requestedAt: Date(timeIntervalSince1970: 0), endedAt: nil)
        #expect(
            revocation.line == "(revoked)  1970-01-01T00:00:00.000Z  by desk for “7”: wrong text  "
                + "in progress: 0 held, 0 gathered, 0 fan-outs, 0 pushes, 0 shown, 0 inbox items so far")
        revocation.endedAt = Date(timeIntervalSince1970: 1)
        revocation.effect.held = 2
        revocation.campaigns = [UUID(uuidString: Self.id)!]
        #expect(revocation.line.hasSuffix("carried out 1970-01-01T00:00:01.000Z: \(revocation.effect.text)"))
        #expect(
            revocation.campaignLines == [
                "the campaign \(Self.id) goes on: rules does not know its users"
            ])
        revocation.user = nil
        #expect(
            revocation.campaignLines == [
                "the campaign \(Self.id) is cancelled, and its queued pushes are not sent"
            ])
    }
}
