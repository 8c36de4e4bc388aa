import ArgumentParser
import Foundation
import PushProtocol
import RuleLanguage

struct DryRunOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The events; “-” reads the standard input.", valueName: "file"))
    var events: String
    @Option(
        name: [.customLong("people"), .customLong("users")],
        help: ArgumentHelp("Settings of users and members of groups.", valueName: "file"))
    var people: String?

    static let files = """
        Events are structured CloudEvents, one JSON object a line. A line may have “at”, the time of the event, and \
        “app”, which is required for rules of several apps: {"at": "2026-03-31T09:00:00Z", "app": "…", "event": {…}}. \
        A receipt is {"at": "…", "app": "…", "receipt": {"user": "…", "rule": "…", "what": "opened"}}. \
        The clock of the dry run goes from event to event, and from the last one on as long \
        as a notification is held or collected, at most 400 days.

        People are {"people": {"<user>": {settings}}, "groups": {"<group>": ["<user>", {"id": "<user>", "role": "…"}]}, \
        "segments": {"tag <name>": ["<user>"], "everyone": ["<user>"]}}.
        """

    /// The time of events without one begins at 2026-01-01.
    static let start = Timestamp(milliseconds: 1_767_225_600_000)
    /// How long the dry run continues after the last event at most. It ends as soon as nothing is held or collected.
    static let rest = Duration.seconds(400 * 86_400)

    /// Processes the events by these rules.
    ///
    /// - Parameter read: returns the content of a file; `-` is the standard input.
    func runDry(_ ruleSets: RuleSets, _ read: (String) -> Data?) throws -> DryRun {
        guard let data = read(events), let text = String(validating: data, as: UTF8.self) else {
            throw DryRunFiles.Problem(description: "\(events): there is no such file, or it is not UTF-8")
        }
        let recorded = try DryRunFiles.events(text, name: events, ruleSets: ruleSets, start: Self.start)
        var dryRun = DryRun(ruleSets)
        if let people {
            guard let data = read(people) else {
                throw DryRunFiles.Problem(description: "\(people): there is no such file")
            }
            try DryRunFiles.people(data, name: people, into: &dryRun)
        }
        for one in recorded { dryRun.process(one) }
        dryRun.advance(to: (recorded.last?.at ?? Self.start) + Self.rest)
        return dryRun
    }
}
