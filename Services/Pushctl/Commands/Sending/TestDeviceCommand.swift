import ArgumentParser
import DecisionLog
import Foundation
import PushProtocol
import ServiceKit

/// `pushctl test-device`: sends a test push to a user's devices, and prints each provider's answer.
struct TestDeviceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test-device",
        abstract: "Send a test push to a user's devices, and print the decision and each provider's answer.",
        discussion: """
            The push takes the way of every other: broker, rules, registry, sender and provider. It is not in the inbox,
            and it ends after five minutes. With --silent nobody sees it, and the user's settings do not apply. Exit
            code 1 if no provider accepted it.
            """)
    @Option(help: "The app.") var app: String
    @Option(help: "The user.") var user: String
    @Option(help: "Succeed only if the provider of this device accepts it; the id is that of `devices list`.")
    var device: String?
    @Flag(help: "Wake the app and show nothing.") var silent = false
    @Option(help: "The seconds to wait.") var timeout = 30
    @OptionGroup var apps: AppsOption
    @OptionGroup var output: OutputOption

    func run() async throws {
        let app = try apps.app(app).id
        guard let user = UserID(rawValue: user) else { throw CommandError(UserID.rule, .usage) }
        let wanted = try device.map { try UUID(device: $0) }
        let event = try UpstreamEvent(
            type: DirectNotification.eventType, data: DirectNotification.test(to: user, isSilent: silent).json,
            identity: try EventIdentity.parse([]), app: app)
        try await event.publish()
        let waiting = try WaitOption.parse(["--wait", "--timeout", "\(timeout)"])
        let explanation = try await waiting.explained(event)
        try output.write(event.receipt(with: explanation), text: [event.line] + explanation.lines)
        if let failure = explanation.testFailure(device: wanted) { throw CommandError(failure) }
    }
}

extension Explanation {
    /// The reason why a test push counts as failed; `nil` if a provider accepted it.
    ///
    /// - Parameter device: the device whose provider must have accepted it; `nil`: any.
    func testFailure(device: UUID?) -> String? {
        let outcomes = traces.flatMap(\.outcomes).filter { device == nil || $0.device == device }
        if outcomes.contains(where: { $0.disposition == "accepted" }) { return nil }
        guard let decision = traces.first?.decisions.last else { return "no user was decided about" }
        guard decision.answer.hasPrefix("push") else {
            return "not pushed (\(decision.reason)); --silent ignores the user's settings"
        }
        if outcomes.isEmpty { return "no provider has answered\(device == nil ? "" : " about this device")" }
        return "no provider accepted it"
    }
}
