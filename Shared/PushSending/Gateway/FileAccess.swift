import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// File status that shows a change without reading the file.
///
/// Follows links, so it also shows a replaced symbolic link, which is how Kubernetes updates mounted secrets.
package struct FileIdentity: Hashable, Sendable {
    package var device: UInt64
    package var inode: UInt64
    package var size: Int64
    /// Nanoseconds since 1970.
    package var modified: Int64
}

/// File system access, injected for tests.
package struct FileAccess: Sendable {
    /// `nil` if the file is missing or inaccessible.
    package var identity: @Sendable (_ path: String) -> FileIdentity?
    package var contents: @Sendable (_ path: String) -> [UInt8]?

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
