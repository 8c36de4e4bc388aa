internal import Glibc

/// Finds the system's error of a failed TCP connection. librabbitmq reports "a socket error occurred" for all of them.
enum ConnectProbe {
    /// Connects again and reads the error. Blocks for at most `timeout`.
    ///
    /// - Parameter address: A numeric address from ``Resolver``.
    /// - Returns: Text such as `Connection refused`; `nil` when the connection succeeds or times out.
    static func failure(_ address: String, port: Int, timeout: Duration = .seconds(1)) -> String? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, "\(port)", &hints, &list) == 0, let entry = list else { return nil }
        defer { freeaddrinfo(list) }
        let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(entry.pointee.ai_family, flags, 0)
        guard descriptor >= 0 else { return text(errno) }
        defer { close(descriptor) }
        if connect(descriptor, entry.pointee.ai_addr, entry.pointee.ai_addrlen) == 0 { return nil }
        guard errno == EINPROGRESS else { return text(errno) }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&waiting, 1, Int32(clamping: Int64(timeout / .milliseconds(1)))) > 0 else { return nil }
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0, error != 0 else { return nil }
        return text(error)
    }

    private static func text(_ error: Int32) -> String { String(cString: strerror(error)) }
}
