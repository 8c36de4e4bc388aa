import ArgumentParser
import Foundation
import HTTPSFetch
import PushProtocol
import ServiceKit

/// `pushctl topics …`: subscriptions of registrations to FCM topics.
struct TopicsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics", abstract: "Subscribe registrations to FCM topics, or unsubscribe them.",
        subcommands: [Subscribe.self, Unsubscribe.self])

    struct Subscribe: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Subscribe the registrations on standard input, one token or FID per line.")
        @OptionGroup var options: Options

        func run() async throws { try await options.run(.subscribe) }
    }

    struct Unsubscribe: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Unsubscribe the registrations on standard input, one token or FID per line.")
        @OptionGroup var options: Options

        func run() async throws { try await options.run(.unsubscribe) }
    }

    struct Options: ParsableArguments {
        @Option(help: "The app whose service account to use.") var app: String
        @Option(help: "The topic, without /topics/.") var topic: String
        @Flag(help: "Use the legacy Instance ID API: a thousand tokens per call, no FIDs.")
        var legacy = false
        @Option(help: "The URL of FCM.") var url = "https://fcm.googleapis.com"
        @Option(help: "The URL of the Instance ID API.") var legacyURL = TopicSubscription.legacyURL
        @Option(help: "The URL of the token endpoint. Default: token_uri of the account.")
        var tokenURL: String?
        @Option(help: "CA certificates (PEM) to trust instead of the system's.") var caFile: String?
        @OptionGroup var apps: AppsOption
        @OptionGroup var output: OutputOption

        func run(_ change: TopicSubscription.Change) async throws {
            guard let file = try apps.app(app).fcm?.serviceAccountFile else {
                throw CommandError("the app \(app) has no service account, which FCM requires", .configuration)
            }
            guard topic.wholeMatch(of: /[A-Za-z0-9\-_.~%]{1,900}/) != nil else {
                throw CommandError(
                    "“\(topic)” is not a topic: 1 to 900 of a-z A-Z 0-9 - _ . ~ %, without /topics/", .usage)
            }
            let tokens = try Self.tokens()
            let client = TopicClient(
                subscription: TopicSubscription(change: change, topic: topic), accountFile: file, tokenURL: tokenURL,
                fetch: HTTPSFetch(caFile: caFile))
            let answers =
                try await legacy
                ? client.sendLegacy(tokens, at: legacyURL) : client.send(tokens, at: url)
            let report = TopicReport(answers)
            try output.write(report.json, text: [report.text])
            if !report.isComplete { throw ExitCode(CommandStatus.findings.rawValue) }
        }

        private static func tokens() throws -> [DeviceToken] {
            var tokens: [DeviceToken] = []
            var number = 0
            while let line = readLine() {
                number += 1
                guard !line.isEmpty else { continue }
                guard let token = DeviceToken(line, for: .fcm) else {
                    throw CommandError("line \(number) of standard input is not a registration token or FID", .input)
                }
                tokens.append(token)
            }
            guard !tokens.isEmpty else {
                throw CommandError("standard input is empty; give one token or FID per line", .input)
            }
            return tokens
        }
    }
}
