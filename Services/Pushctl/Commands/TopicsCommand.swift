import ArgumentParser
import Foundation
import HTTPSFetch
import PushProtocol
import PushSending
import ServiceKit

/// `pushctl topics …`: who gets what an app sends to an FCM topic.
struct TopicsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics", abstract: "FCM topics: subscribes registrations, and ends subscriptions.",
        subcommands: [Subscribe.self, Unsubscribe.self])

    struct Subscribe: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Subscribes the registrations on standard input, one token or FID a line.")
        @OptionGroup var options: Options

        func run() async throws { try await options.run(.subscribe) }
    }

    struct Unsubscribe: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends the subscriptions of the registrations on standard input, one token or FID a line.")
        @OptionGroup var options: Options

        func run() async throws { try await options.run(.unsubscribe) }
    }

    struct Options: ParsableArguments {
        @Option(help: "The app, whose service account is used.") var app: String
        @Option(help: "The topic, without /topics/.") var topic: String
        @Flag(help: "Uses the Instance ID API: a thousand tokens a call, no FIDs; Google calls it legacy.")
        var legacy = false
        @Option(help: "Where FCM is.") var url = "https://fcm.googleapis.com"
        @Option(help: "Where the Instance ID API is.") var legacyURL = TopicSubscription.legacyURL
        @Option(help: "Where access tokens are obtained; the account's own token_uri when it is not given.")
        var tokenURL: String?
        @Option(help: "PEM certificates to trust instead of the system's.") var caFile: String?
        @OptionGroup var apps: AppsOption

        func run(_ change: TopicSubscription.Change) async throws {
            guard let id = AppID(rawValue: app), let configured = try apps.load()[id] else {
                throw Refusal("no app “\(app)” is in the apps file")
            }
            guard let file = configured.fcm?.serviceAccountFile else {
                throw Refusal("the app \(app) has no service account, and FCM is asked with one")
            }
            guard topic.wholeMatch(of: /[A-Za-z0-9\-_.~%]{1,900}/) != nil else {
                throw Refusal("“\(topic)” is not a topic: 1 to 900 of a-z A-Z 0-9 - _ . ~ %, without /topics/")
            }
            let tokens = try Self.tokens()
            let client = TopicClient(
                subscription: TopicSubscription(change: change, topic: topic), accountFile: file, tokenURL: tokenURL,
                fetch: HTTPSFetch(caFile: caFile))
            let answers =
                try await legacy
                ? client.sendLegacy(tokens, at: legacyURL) : client.send(tokens, at: url)
            let report = TopicReport(answers)
            print(report.text)
            if !report.isComplete { throw ExitCode.failure }
        }

        private static func tokens() throws -> [DeviceToken] {
            var tokens: [DeviceToken] = []
            var number = 0
            while let line = readLine() {
                number += 1
                guard !line.isEmpty else { continue }
                guard let token = DeviceToken(line, for: .fcm) else {
                    throw Refusal("line \(number) of standard input is not a registration token or FID")
                }
                tokens.append(token)
            }
            guard !tokens.isEmpty else {
                throw Refusal("standard input names no registration; give one token or FID a line")
            }
            return tokens
        }
    }
}
