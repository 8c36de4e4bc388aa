import ArgumentParser
import DecisionLog
import Foundation
import PushProtocol

/// `pushctl revoke`: takes notifications back.
struct RevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Take notifications back.",
        discussion: """
            They may be held, gathered, queued for a provider, shown on a phone, or in the inbox. Rules carries the revocation
            out within seconds. A repeated command prints the state of the first one. Apps with the client code of
            deploy/clients remove shown notifications.
            """)

    @Option(help: "The app of the event or the notification.") var app: String
    @Option(help: "Revoke all notifications about the event with this id.") var event: String?
    @Option(help: "Revoke the notification with this id, as `pushctl explain` prints it.") var notification: String?
    @Option(help: "Only the notifications of this user.") var user: String?
    @Option(help: "The reason, which is stored with the revocation.") var reason: String?
    @Option(help: "Whether inbox items are removed or kept.") var inbox = Revocation.Inbox.remove
    @Flag(help: "Accept an event that has not arrived. It is revoked when it arrives.") var ahead = false
    @Flag(help: "Print the number of things that would be revoked, and store nothing.") var dryRun = false
    @OptionGroup var output: OutputOption

    func run() async throws {
        let request = try request()
        if dryRun { return try await preview(request) }
        let result = try await withDatabase { try await RevocationLog($0).record(request, by: .commandLine) }
        switch result {
        case .unknown: throw Self.unknown(request)
        case .isCampaign:
            throw CommandError("the id is that of a campaign; cancel it with pushctl campaigns cancel", .usage)
        case .recorded(let revocation, let isNew):
            let heading = isNew ? "stored; rules carries it out now" : "stored before; nothing is changed"
            try output.write(revocation.json, text: [heading, revocation.line] + revocation.campaignLines)
        }
    }

    private func preview(_ request: RevocationRequest) async throws {
        let found = try await withDatabase { try await RevocationLog($0).preview(request) }
        guard let effect = found else { throw Self.unknown(request) }
        try output.write(["would_revoke": effect.json], text: ["would revoke \(effect.text)"])
    }

    func request() throws -> RevocationRequest {
        let target: RevocationRequest.Target
        switch (event, notification) {
        case (let event?, nil):
            guard CloudEvents.isID(event) else { throw CommandError("“--event” is not an event's id", .usage) }
            target = .event(event)
        case (nil, let text?):
            guard let id = UUID(uuidString: text) else {
                throw CommandError("“\(text)” is not a notification's id, a UUID", .usage)
            }
            guard !ahead else { throw CommandError("only an event can be revoked before it arrives", .usage) }
            target = .notification(id)
        case (nil, nil), (_?, _?): throw CommandError("give --event or --notification, and not both", .usage)
        }
        var request = RevocationRequest(
            app: try AppID(named: app), target: target, inbox: inbox, reason: reason, isAhead: ahead)
        if let user {
            guard let id = UserID(rawValue: user) else { throw CommandError("“\(user)” is not a user id", .usage) }
            request.user = id
        }
        if let reason, !reason.isFreeText(upTo: RevocationRequest.maximumReason) {
            throw CommandError("a reason has 1–\(RevocationRequest.maximumReason) characters without controls", .usage)
        }
        return request
    }

    private static func unknown(_ request: RevocationRequest) -> CommandError {
        switch request.target {
        case .event(let id):
            CommandError(
                "the app \(request.app) has no event “\(id)”; check the id, or give --ahead to revoke it when it arrives",
                .notFound)
        case .notification(let id):
            CommandError(
                "the app \(request.app) has no notification \(id.uuidString.lowercased()), or not for this user; "
                    + "pushctl explain prints the ids", .notFound)
        }
    }
}

extension Revocation.Inbox: ExpressibleByArgument {}
