internal import Foundation
internal import Synchronization

/// A client on loopback that sends one request as it is and keeps what comes, as it comes, until it is closed.
package final class StreamingClient: Sendable {
    private struct State {
        var text = ""
        var isOver = false
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    /// - Parameter isReading: whether what comes is read at all.
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

    /// All that has come, head and chunks and all.
    package var text: String { state.withLock { $0.text } }
    /// Whether the other side has closed, or ``close()`` was called.
    package var isOver: Bool { state.withLock { $0.isOver } }

    package func close() { LoopbackSocket.shutDown(descriptor) }
}
