import FoundationEssentials
import PushProtocol

/// Parts of several pages.
enum Parts {
    /// Returns a table in a region of its own that scrolls, or a sentence if there are no rows.
    static func table(_ caption: String, _ heads: [String], _ rows: [HTML], none: String) -> HTML {
        guard !rows.isEmpty else { return "<section><h2>\(caption)</h2><p class=\"none\">\(none)</p></section>" }
        let cells = heads.map { head -> HTML in "<th scope=\"col\">\(head)</th>" }
        return """
            <section><h2>\(caption)</h2><div class="scroll" role="region" aria-label="\(caption)" tabindex="0"><table>
            <thead><tr>\(cells)</tr></thead><tbody>
            \(rows)</tbody></table></div></section>

            """
    }

    static func row(_ cells: [HTML]) -> HTML {
        "<tr>\(cells.map { cell -> HTML in "<td>\(cell)</td>" })</tr>\n"
    }

    /// A time as in the API: `2026-03-31T09:00:00.250Z` becomes `2026-03-31 09:00:00.250 UTC`.
    static func time(_ value: JSONValue?) -> HTML {
        guard let text = value?.string else { return "–" }
        return "<time datetime=\"\(text)\">\(text.replacing("T", with: " ").replacing("Z", with: " UTC"))</time>"
    }

    /// Returns a word in the colour of its meaning.
    static func word(_ text: String) -> HTML { "<span class=\"word \(tone(text))\">\(text)</span>" }

    private static func tone(_ word: String) -> String {
        switch word {
        case "push", "accepted", "ready", "open", "active", "opened": "good"
        case "drop", "rejected", "failed", "unregistered", "expired", "not ready", "away", "ended": "bad"
        default: "plain"
        }
    }

    /// The reason's word, with the sentence that explains it.
    static func reason(_ value: JSONValue?, _ meanings: JSONValue?) -> HTML {
        guard let word = value?.string else { return "–" }
        guard let meaning = meanings?[word]?.string else { return "\(word)" }
        return "\(word)<br><small>\(meaning)</small>"
    }

    static func eventPath(_ event: String, app: String) -> String {
        "/event?\(FormCoding.text([("app", app), ("id", event)]))"
    }

    static func personPath(_ user: String, app: String) -> String {
        "/person?\(FormCoding.text([("app", app), ("user", user)]))"
    }

    static func link(_ path: String, _ text: String) -> HTML { "<a href=\"\(path)\">\(text)</a>" }
}
