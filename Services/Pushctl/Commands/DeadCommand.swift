import AMQP
import ArgumentParser
import Foundation
import Messaging
import PushProtocol
import ServiceKit

/// `pushctl dead …`: what the stages gave up on.
struct DeadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead", abstract: "Dead letters: what no stage could do anything with, and trying it again.",
        discussion: "Needs an AMQP_URL with the broker's user dead-letters.",
        subcommands: [List.self, Show.self, Replay.self, Drop.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Tells how many dead letters each queue has.")
        @OptionGroup var apps: AppsOption

        func run() async throws {
            let queues = WorkQueue.all(apps: try apps.load().ids)
            let counts = try await DeadCommand.withWalk { walk in
                var counts: [(WorkQueue, Int)] = []
                for queue in queues { if let depth = try await walk.depth(of: queue) { counts.append((queue, depth)) } }
                return counts.filter { $0.1 > 0 }
            }
            if counts.isEmpty { print("there are no dead letters") }
            for (queue, count) in counts { print("\(count)  \(queue.name)") }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows why each dead letter of a queue is one; never what it says.",
            discussion: "Of more than --most the others are shown by the next call: what was shown goes to the end.")
        @OptionGroup var choice: Choice

        func run() async throws {
            let lines = try await choice.walk { _ in .keep }.letters.map(DeadLetterReport.line)
            for line in lines { print(line) }
            if lines.isEmpty { print("nothing of that kind lies there") }
        }
    }

    struct Replay: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Gives dead letters back to their stage, as if they came for the first time.",
            discussion: "Mend the cause first: what fails again is a dead letter again.")
        @OptionGroup var choice: Choice

        func run() async throws {
            let (letters, foreign) = try await choice.walk { _ in .replay }
            print("replayed: \(letters.count - foreign)")
            if foreign > 0 {
                print("not replayed: \(foreign) that another stage wrote; look at them with `show`, then `drop` them")
            }
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Throws dead letters away for good; without --yes it only counts them.")
        @OptionGroup var choice: Choice
        @Flag(help: "Does it.") var yes = false

        func run() async throws {
            let yes = yes
            let count = try await choice.walk { _ in yes ? .drop : .keep }.letters.count
            print(yes ? "dropped: \(count)" : "\(count) would be dropped; say --yes to do it")
        }
    }

    /// The dead letters that a command is about.
    struct Choice: ParsableArguments {
        @Argument(help: "The queue whose stage gave up, as `list` prints it.") var queue: String
        @Option(help: "Only the message of this id.") var id: String?
        @Option(help: "Only those given up for this reason, as `show` prints it.") var reason: String?
        @Option(help: "The most that are looked at.") var most = 10_000
        @OptionGroup var apps: AppsOption

        /// Goes through the queue, and returns the letters that were meant, and how many of them another stage wrote and
        /// were therefore not replayed.
        func walk(
            _ decide: @Sendable (DeadLetter) -> DeadLetterWalk.Fate
        ) async throws -> (letters: [DeadLetter], foreign: Int) {
            let queues = WorkQueue.all(apps: try apps.load().ids)
            guard let queue = queues.first(where: { [$0.name, $0.deadName].contains(queue) }) else {
                throw Refusal("“\(queue)” is no queue of a stage; pushctl dead list names those that have dead letters")
            }
            let (id, reason, most) = (id, reason, most)
            return try await DeadCommand.withWalk { walk in
                guard try await walk.depth(of: queue) != nil else {
                    throw Refusal("the broker has no queue \(queue.deadName); run pushctl topology apply")
                }
                var meant: [DeadLetter] = []
                let foreign = try await walk.walk(queue, most: most) { letter in
                    guard id == nil || letter.id == id, reason == nil || letter.reason == reason else { return .keep }
                    meant.append(letter)
                    return decide(letter)
                }
                return (meant, foreign)
            }
        }
    }

    private static func withWalk<Result: Sendable>(
        _ body: @Sendable (DeadLetterWalk) async throws -> Result
    ) async throws -> Result {
        try await withBroker { administrator in
            let transactor = try AMQPTransactor(try brokerConfiguration(), logger: Environment.logger)
            do {
                let result = try await body(DeadLetterWalk(administrator: administrator, transactor: transactor))
                await transactor.close()
                return result
            } catch {
                await transactor.close()
                throw error
            }
        }
    }
}
