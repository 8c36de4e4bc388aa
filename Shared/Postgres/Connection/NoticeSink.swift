internal import CPostgres
internal import Logging

/// Logs the server's notices at level debug.
///
/// The connection owns the sink longer than libpq uses it, hence `passUnretained`. libpq calls on the connection's
/// thread.
final class NoticeSink: Sendable {
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    func install(on connection: OpaquePointer) {
        PQsetNoticeReceiver(connection, receiveNotice, Unmanaged.passUnretained(self).toOpaque())
    }

    fileprivate func log(_ result: OpaquePointer?) {
        guard let text = PQresultErrorField(result, Int32(UInt8(ascii: "M"))) else { return }
        logger.debug("Postgres notice", metadata: ["notice": "\(String(cString: text))"])
    }
}

private func receiveNotice(_ sink: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {
    guard let sink else { return }
    Unmanaged<NoticeSink>.fromOpaque(sink).takeUnretainedValue().log(result)
}
