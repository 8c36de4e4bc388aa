import FoundationEssentials
import Logging
import PushProtocol

/// swift-log's backend: redacts a message, renders one line and writes it to the sink.
struct LineLogHandler: LogHandler {
    /// The process's level, until this logger gets one of its own.
    var logLevel: Logger.Level {
        get { own ?? process.level }
        set { own = newValue }
    }
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    private var own: Logger.Level?
    private let process: CurrentLogLevel
    private let label: String
    private let identity: [(name: String, value: String)]
    private let format: LogLine.Format
    private let sink: LogSink

    init(
        label: String, level: CurrentLogLevel, format: LogLine.Format, service: String, instance: String, sink: LogSink
    ) {
        self.label = label
        process = level
        self.format = format
        self.sink = sink
        identity = [("service", service), ("instance", instance)]
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
        if let own = event.metadata { all.merge(own) { $1 } }
        if let error = event.error { all[LogKey.error] = "\(error)" }
        var line = LogLine(
            time: RFC3339.string(from: Date()), level: event.level, label: label,
            message: Redaction.redacted(event.message.description), identity: identity,
            metadata: Redaction.redacted(all))
        sink.write { dropped in
            line.dropped = dropped
            return line.bytes(format)
        }
    }
}
