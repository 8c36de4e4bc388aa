internal import CPostgres
internal import Logging

/// Writes the server's notices to the log, at debug.
///
/// The connection owns it and outlives libpq's use of it, hence `passUnretained`. libpq calls on the thread that is
/// reading the connection.
final class NoticeSink: Sendable {
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    func install(on connection: OpaquePointer) {
        PQsetNoticeReceiver(connection, receiveNotice, Unmanaged.passUnretained(self).toOpaque())
    }

    fileprivate func log(_ result: OpaquePointer?) {
        guard let text = PQresultErrorField(result, Int32(UInt8(ascii: "M"))) else { return }
        logger.debug("postgres notice", metadata: ["notice": "\(String(cString: text))"])
    }
}

private func receiveNotice(_ sink: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {
    guard let sink else { return }
    Unmanaged<NoticeSink>.fromOpaque(sink).takeUnretainedValue().log(result)
}
