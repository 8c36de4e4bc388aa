/// The help of `rules check`, `preview` and `diff`.
enum RuleToolHelp {
    static let commands = ["check", "preview", "diff"]

    /// One line for each command.
    static let usage = [
        "usage: rules check PATH…                          name every mistake in rule files",
        "       rules preview PATH --events FILE           show who would get which push, when, and why",
        "             [--people FILE] [--apps FILE]",
        "       rules diff OLD NEW --events FILE           show who would hear more, less, later or otherwise",
        "             [--people FILE]",
        "       rules check|preview|diff --help            explain a command",
    ]

    static let exitCodes = [
        "Exit codes: 0 no mistake and no difference; 1 a mistake, a difference, or a file that cannot be read;",
        "64 a wrong command line.",
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
        "Decide about recorded events as the service would, and print one line for each decision. Under a push stand its",
        "content and the request of each provider with its size. Under a changed inbox entry stands its text.",
        "“!badge” is the correction of a badge. PATH is a folder of rule files or one of them. Nothing is sent.",
        "",
        "  --events FILE   the events; “-” reads the standard input",
        "  --people FILE   settings of users and members of groups",
        "  --apps FILE     the apps file (HELIOGRAPH_APPS): shows bundle ids, and skips providers without credentials",
    ]

    private static let diff = [
        "usage: rules diff OLD NEW --events FILE [--people FILE]",
        "",
        "Decide about recorded events by old and by new rules, and print the pushes that differ: more, less, later, earlier",
        "or otherwise. OLD and NEW are folders of rule files or single ones. Nothing is sent.",
        "",
        "  --events FILE   the events; “-” reads the standard input",
        "  --people FILE   settings of users and members of groups",
    ]

    private static let files = [
        "Events are structured CloudEvents, one JSON object a line. Beside the event may stand “at”, when it happens, and",
        "“app”, where there are rules of several apps: {\"at\": \"2026-03-31T09:00:00Z\", \"app\": \"…\", \"event\": {…}}.",
        "The clock goes from one event to the next, and then a day further.",
        "People are {\"people\": {\"<user>\": {settings}}, \"groups\": {\"<group>\": [\"<user>\", {\"id\": \"<user>\", \"role\": \"…\"}]}}.",
    ]
}
