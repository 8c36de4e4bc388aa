/// Gauges and counters in the text format of Prometheus (exposition format 0.0.4).
struct MetricSnapshot: Hashable, Sendable {
    struct Sample: Hashable, Sendable {
        var labels: [String: String]
        var value: Double
    }

    private var samples: [String: [Sample]] = [:]

    /// Lines that cannot be read are left out.
    init(_ text: String) {
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let (name, sample) = Self.sample(line) else { continue }
            samples[name, default: []].append(sample)
        }
    }

    subscript(name: String) -> [Sample] { samples[name] ?? [] }

    private static func sample(_ line: Substring) -> (String, Sample)? {
        let name = line.prefix { $0 != "{" && $0 != " " }
        var rest = line.dropFirst(name.count)
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest.removeFirst()
            while let first = rest.first, first != "}" {
                guard let equals = rest.firstIndex(of: "="), let (value, end) = quoted(rest[equals...].dropFirst())
                else {
                    return nil
                }
                labels[String(rest[..<equals])] = value
                rest = end.first == "," ? end.dropFirst() : end
            }
            guard rest.first == "}" else { return nil }
            rest.removeFirst()
        }
        let words = rest.split(separator: " ")
        guard let number = words.first.flatMap({ Double($0) }) else { return nil }
        return (String(name), Sample(labels: labels, value: number))
    }

    /// Reads a quoted label value with the escapes `\\`, `\"` and `\n`.
    private static func quoted(_ text: Substring) -> (String, Substring)? {
        guard text.first == "\"" else { return nil }
        var value = ""
        var rest = text.dropFirst()
        while let character = rest.popFirst() {
            switch character {
            case "\"": return (value, rest)
            case "\\": value.append(rest.popFirst() == "n" ? "\n" : text[text.index(before: rest.startIndex)])
            default: value.append(character)
            }
        }
        return nil
    }
}
