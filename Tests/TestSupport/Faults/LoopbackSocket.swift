internal import Foundation

/// Blocking TCP sockets on 127.0.0.1.
enum LoopbackSocket {
    struct Failed: Error, CustomStringConvertible {
        let call: String
        var description: String { "\(call) failed on a loopback socket" }
    }

    #if canImport(Darwin)
        private static let stream = SOCK_STREAM
    #else
        private static let stream = Int32(SOCK_STREAM.rawValue)
    #endif

    /// Listens on `port`, or on a free one for 0.
    static func listen(port: Int = 0) throws -> (descriptor: Int32, port: Int) {
        let descriptor = socket(AF_INET, stream, 0)
        var (address, length) = (address(port: port), socklen_t(MemoryLayout<sockaddr_in>.size))
        let isBound = withGeneric(&address) { pointer in
            bind(descriptor, pointer, length) == 0 && Foundation.listen(descriptor, 64) == 0
                && getsockname(descriptor, pointer, &length) == 0
        }
        guard descriptor >= 0, isBound else {
            close(descriptor)
            throw Failed(call: "listen")
        }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    static func accept(_ listener: Int32) -> Int32? {
        let descriptor = Foundation.accept(listener, nil, nil)
        return descriptor < 0 ? nil : descriptor
    }

    static func connect(port: Int) -> Int32? {
        let descriptor = socket(AF_INET, stream, 0)
        var address = address(port: port)
        let isConnected = withGeneric(&address) {
            Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
        if isConnected { return descriptor }
        close(descriptor)
        return nil
    }

    /// Reads available bytes; `nil` at the end or on an error.
    static func read(_ descriptor: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer.prefix(count)) : nil
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        #if canImport(Darwin)
            let flags: Int32 = 0
        #else
            let flags = Int32(MSG_NOSIGNAL)
        #endif
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, flags) }
            guard count > 0 else { return false }
            rest.removeFirst(count)
        }
        return true
    }

    static func shutDown(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    static func close(_ descriptor: Int32) { _ = Foundation.close(descriptor) }

    private static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func withGeneric<R>(_ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> R) -> R
    {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }
}
