import Synchronization

/// Gauges that are read at each scrape: the state of a pool or a connection. Thread-safe.
package final class MetricSamples: Sendable {
    private struct Source {
        let labels: String
        let value: @Sendable () -> Double
    }

    private let sources = Mutex<[String: [Source]]>([:])

    package init() {}

    /// Adds a gauge. Replaces one with the same name and labels.
    ///
    /// - Parameters:
    ///   - name: The full name of the family, such as `heliograph_broker_blocked`.
    ///   - value: Returns the value. Called at every scrape, so it must not block.
    package func register(
        _ name: String, labels: [(String, String)] = [], _ value: @escaping @Sendable () -> Double
    ) {
        let source = Source(labels: MetricName.labels(labels), value: value)
        sources.withLock { sources in
            sources[name, default: []].removeAll { $0.labels == source.labels }
            sources[name, default: []].append(source)
        }
    }

    /// Renders all gauges, sorted by family and labels.
    func render() -> String {
        let sources = sources.withLock { $0 }
        var text = ""
        for (name, sources) in sources.sorted(by: { $0.key < $1.key }) {
            text += MetricHelp.header(name, "gauge")
            for source in sources.sorted(by: { $0.labels < $1.labels }) {
                text += "\(name)\(source.labels) \(source.value().prometheusText)\n"
            }
        }
        return text
    }
}
