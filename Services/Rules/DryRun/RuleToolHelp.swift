/// The help of `rules check`, `preview` and `diff`.
enum RuleToolHelp {
    static let commands = ["check", "preview", "diff"]

    /// One line for each command.
    static let usage = [
        "usage: rules check PATH…                          list every mistake in rule files",
        "       rules preview PATH --events FILE           show each user's pushes, with times and reasons",
        "             [--people FILE] [--apps FILE]",
        "       rules diff OLD NEW --events FILE           show the pushes that differ between two rule sets",
        "             [--people FILE]",
        "       rules check|preview|diff --help            explain a command",
    ]

    static let exitCodes = [
        "Exit codes: 0 no mistake, no difference; 1 a mistake, a difference, or a file that cannot be read;",
        "64 wrong arguments.",
    ]

    /// The whole help of a command.
    static func text(_ command: String) -> String {
        let parts =
            switch command {
            case "check": [check]
            case "preview": [preview, files]
            default: [diff, files]
            }
        return (parts + [exitCodes]).map { $0.joined(separator: "\n") }.joined(separator: "\n\n")
    }

    private static let check = [
        "usage: rules check PATH…",
        "",
        "Read rule files and print every mistake with file, line and key. PATH is a folder of rule files or one of them.",
        "Every rule is rendered with every example that it matches. Nothing is sent.",
    ]

    private static let preview = [
        "usage: rules preview PATH --events FILE [--people FILE] [--apps FILE]",
        "",
        "Decide recorded events as the service would, and print one line for each decision. Below a push are its content",
        "and the request to each provider with its size. Below a new inbox item is its text, if it differs from the push.",
        "The rule “!badge” is a correction of a badge. PATH is a folder of rule files or one of them. Nothing is sent.",
        "",
        "  --events FILE   the events; “-” reads the standard input",
        "  --people FILE   settings of users and members of groups",
        "  --apps FILE     the apps file (HELIOGRAPH_APPS): shows bundle ids, and skips providers without credentials",
    ]

    private static let diff = [
        "usage: rules diff OLD NEW --events FILE [--people FILE]",
        "",
        "Decide recorded events by old and by new rules, and print the pushes that differ: more, less, later, earlier",
        "or otherwise. OLD and NEW are folders of rule files or single ones. Nothing is sent.",
        "",
        "  --events FILE   the events; “-” reads the standard input",
        "  --people FILE   settings of users and members of groups",
    ]

    private static let files = [
        "Events are structured CloudEvents, one JSON object a line. A line may have “at”, the time of the event, and “app”,",
        "which is required for rules of several apps: {\"at\": \"2026-03-31T09:00:00Z\", \"app\": \"…\", \"event\": {…}}.",
        "The clock of the dry run goes from event to event, and ends one day after the last.",
        "People are {\"people\": {\"<user>\": {settings}}, \"groups\": {\"<group>\": [\"<user>\", {\"id\": \"<user>\", \"role\": \"…\"}]}}.",
    ]
}
