internal import Foundation

/// A port on 127.0.0.1 that takes connections and never says a word.
package final class SilentListener: Sendable {
    package let port: Int
    private let descriptor: Int32

    package init() throws { (descriptor, port) = try LoopbackSocket.listen() }

    deinit { close(descriptor) }
}
