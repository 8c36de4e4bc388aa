import AMQP
import ArgumentParser
import Foundation
import Messaging
import Primitives
import PushProtocol
import ServiceKit

/// `pushctl dead …`: lists, replays and drops dead letters.
struct DeadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead", abstract: "List, replay or drop dead letters.",
        discussion: "Needs AMQP_URL with the broker's user dead-letters.",
        subcommands: [List.self, Show.self, Replay.self, Drop.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the number of dead letters in each queue.")
        @OptionGroup var apps: AppsOption
        @OptionGroup var output: OutputOption

        func run() async throws {
            let queues = try apps.load().workQueues
            let counts = try await DeadCommand.withDeadLetters { letters in
                var counts: [(WorkQueue, Int)] = []
                for queue in queues {
                    if let depth = try await letters.depth(of: queue) { counts.append((queue, depth)) }
                }
                return counts.filter { $0.1 > 0 }
            }
            var table = TextTable([.right("dead letters"), .left("queue")])
            for (queue, count) in counts { table.add(["\(count)", queue.name]) }
            try output.write(
                [
                    "queues": .array(
                        counts.map { ["queue": .string($0.0.name), "dead_letters": .number($0.1)] })
                ], text: table.lines(orNone: "there are no dead letters"))
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the reason of each dead letter in a queue, without its content.",
            discussion: "Letters beyond --most are shown by the next call: shown letters move to the tail.")
        @OptionGroup var options: DeadLetterOptions

        func run() async throws {
            let letters = try await options.forEachLetter { _ in .keep }.letters
            try options.output.write(
                ["dead_letters": .array(letters.map(DeadLetterReport.json))],
                text: DeadLetterReport.table(letters).lines(orNone: "no matching dead letters"))
        }
    }

    struct Replay: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Requeue dead letters to their stage as new messages.",
            discussion: "Fix the cause first: a message that fails again is dead-lettered again.")
        @OptionGroup var options: DeadLetterOptions

        func run() async throws {
            let (letters, foreign) = try await options.forEachLetter { _ in .replay }
            let hint = "written by another stage; inspect them with `show`, then `drop` them"
            try options.output.write(
                ["replayed": .number(letters.count - foreign), "not_replayed": .number(foreign)],
                text: ["replayed: \(letters.count - foreign)"]
                    + (foreign > 0 ? ["not replayed: \(foreign) \(hint)"] : []))
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete dead letters permanently. Without --yes, only count them.")
        @OptionGroup var options: DeadLetterOptions
        @Flag(help: "Confirm.") var yes = false

        func run() async throws {
            let yes = yes
            let count = try await options.forEachLetter { _ in yes ? .drop : .keep }.letters.count
            try options.output.write(
                ["dropped": .number(yes ? count : 0), "selected": .number(count)],
                text: [yes ? "dropped: \(count)" : "\(count) would be dropped; confirm with --yes"])
        }
    }

    struct DeadLetterOptions: ParsableArguments {
        @Argument(help: "The queue of the stage, as `list` prints it.") var queue: String
        @Option(help: "Only the message with this id.") var id: String?
        @Option(help: "Only letters with this reason, as `show` prints it.") var reason: String?
        @Option(help: "The maximum number of letters to read.") var most = 10_000
        @OptionGroup var apps: AppsOption
        @OptionGroup var output: OutputOption

        /// Applies `action` to each selected letter. Returns the selected letters, and how many were not replayed
        /// because another stage wrote them.
        func forEachLetter(
            _ action: @Sendable (DeadLetter) -> DeadLetterIterator.LetterAction
        ) async throws -> (letters: [DeadLetter], foreign: Int) {
            let queues = try apps.load().workQueues
            guard let queue = queues.first(where: { [$0.name, $0.deadName].contains(queue) }) else {
                throw CommandError(
                    "“\(queue)” is not a stage's queue; pushctl dead list prints the queues with dead letters",
                    .notFound)
            }
            let (id, reason, most) = (id, reason, most)
            return try await DeadCommand.withDeadLetters { letters in
                guard try await letters.depth(of: queue) != nil else {
                    throw CommandError(
                        "the broker has no queue \(queue.deadName); run pushctl topology apply", .notFound)
                }
                var meant: [DeadLetter] = []
                let foreign = try await letters.forEachLetter(queue, most: most) { letter in
                    guard id == nil || letter.id == id, reason == nil || letter.reason == reason else { return .keep }
                    meant.append(letter)
                    return action(letter)
                }
                return (meant, foreign)
            }
        }
    }

    private static func withDeadLetters<Result: Sendable>(
        _ body: @Sendable (DeadLetterIterator) async throws -> Result
    ) async throws -> Result {
        try await withBroker { administrator in
            let transactionChannel = try AMQPTransactionChannel(try brokerConfiguration(), logger: Environment.logger)
            do {
                let result = try await body(
                    DeadLetterIterator(administrator: administrator, transactionChannel: transactionChannel))
                await transactionChannel.close()
                return result
            } catch {
                await transactionChannel.close()
                throw error
            }
        }
    }
}
