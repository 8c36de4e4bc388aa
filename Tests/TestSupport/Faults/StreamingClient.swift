internal import Foundation
internal import Synchronization

/// A loopback client that sends one request and collects the response until the connection closes.
package final class StreamingClient: Sendable {
    private struct State {
        var text = ""
        var isOver = false
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    /// - Parameter isReading: Whether the response is read.
    package init(port: Int, request: String, isReading: Bool = true) throws {
        guard let descriptor = LoopbackSocket.connect(port: port) else { throw LoopbackSocket.Failed(call: "connect") }
        self.descriptor = descriptor
        guard LoopbackSocket.write(Array(request.utf8), to: descriptor) else {
            throw LoopbackSocket.Failed(call: "write")
        }
        guard isReading else { return }
        Thread { [self] in
            while let bytes = LoopbackSocket.read(descriptor) {
                state.withLock { $0.text += String(decoding: bytes, as: UTF8.self) }
            }
            state.withLock { $0.isOver = true }
        }.start()
    }

    /// The received text: head, chunk sizes and chunks.
    package var text: String { state.withLock { $0.text } }
    /// Whether the connection was closed by the server or by ``close()``.
    package var isOver: Bool { state.withLock { $0.isOver } }

    package func close() { LoopbackSocket.shutDown(descriptor) }
}
