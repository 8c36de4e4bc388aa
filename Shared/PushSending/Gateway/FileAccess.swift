import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// What tells that a file is another than before, without reading it. Links are followed, so it also tells when a link
/// on the way there was exchanged, which is how Kubernetes updates mounted secrets.
package struct FileIdentity: Hashable, Sendable {
    package var device: UInt64
    package var inode: UInt64
    package var size: Int64
    /// Nanoseconds since 1970.
    package var modified: Int64

    package init(device: UInt64, inode: UInt64, size: Int64, modified: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
    }
}

/// How files are looked at, injected so that tests own them.
package struct FileAccess: Sendable {
    /// `nil` for a file that is not there, or out of reach.
    package var identity: @Sendable (_ path: String) -> FileIdentity?
    package var contents: @Sendable (_ path: String) -> [UInt8]?

    package init(
        identity: @escaping @Sendable (String) -> FileIdentity?, contents: @escaping @Sendable (String) -> [UInt8]?
    ) {
        self.identity = identity
        self.contents = contents
    }

    package static let system = FileAccess(
        identity: { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            #if os(Linux)
                let modified = status.st_mtim
            #else
                let modified = status.st_mtimespec
            #endif
            return FileIdentity(
                device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
                modified: Int64(modified.tv_sec) * 1_000_000_000 + Int64(modified.tv_nsec))
        }, contents: { path in (try? Data(contentsOf: URL(filePath: path))).map(Array.init) })
}
