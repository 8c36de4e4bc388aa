internal import Logging

extension PendingSettlement {
    /// The metadata of the log line about the settled message.
    var logMetadata: Logger.Metadata {
        var metadata = message?.logMetadata ?? inbound.logMetadata
        guard let reason = disposition.reason else { return metadata }
        metadata[LogKey.reason] = .string(reason.code)
        metadata[LogKey.detail] = .string(reason.detail)
        return metadata
    }
}

extension ResolvedDisposition {
    /// The level of the log line: `debug` for what happens to messages of a healthy system.
    var logLevel: Logger.Level {
        switch self {
        case .deadLetter: .warning
        case .postpone(_, let reason) where reason.code == ReasonCode.outboundUnroutable: .error
        case .retry, .postpone, .done, .discard: .debug
        }
    }
}
