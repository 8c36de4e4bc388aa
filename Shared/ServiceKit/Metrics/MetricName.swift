/// Converts names and labels of swift-metrics to Prometheus syntax.
enum MetricName {
    static let prefix = "heliograph_"

    /// Returns the metric's name: the counter `messages.consumed` becomes `heliograph_messages_consumed_total`.
    static func family(_ label: String, suffix: String) -> String {
        let name = sanitized(label)
        let full = name.hasPrefix(prefix) ? name : prefix + name
        return full.hasSuffix(suffix) ? full : full + suffix
    }

    /// Returns the labels, sorted by name: `{lane="bulk",queue="rules.events"}`; empty without dimensions. Equal
    /// dimensions yield equal texts, which identify the series.
    static func labels(_ dimensions: [(String, String)]) -> String {
        var seen: Set<String> = []
        let pairs =
            dimensions
            .map { (name: labelName($0.0), value: $0.1) }
            .filter { seen.insert($0.name).inserted }
            .sorted { $0.name < $1.name }
            .map { "\($0.name)=\"\(escaped($0.value))\"" }
        return pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}"
    }

    static func escaped(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 == 0x5c || $0 == 0x22 || $0 == 0x0a }) else { return value }
        return value.reduce(into: "") { text, character in
            switch character {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.append(character)
            }
        }
    }

    /// Sanitizes a label name. `le` is reserved for histograms.
    private static func labelName(_ name: String) -> String {
        let name = sanitized(name)
        return name == "le" ? "le_" : name
    }

    private static func sanitized(_ name: String) -> String {
        let text = String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") ? $0 : "_" })
        return text.first?.isNumber ?? true ? "_" + text : text
    }
}
