internal import Foundation

/// A loopback port that accepts connections and sends nothing.
package final class SilentListener: Sendable {
    package let port: Int
    private let descriptor: Int32

    package init() throws { (descriptor, port) = try LoopbackSocket.listen() }

    deinit { close(descriptor) }
}
