import Foundation

/// The `rules` executable, which checks and previews rule files for `pushctl rules`.
enum RulesExecutable {
    static let name = "rules"

    /// The path of the executable: beside this one, else in `PATH`.
    ///
    /// - Parameters:
    ///   - executable: this executable's own path.
    ///   - path: the value of `PATH`.
    static func find(beside executable: String, path: String, isExecutable: (String) -> Bool) -> String? {
        let own = executable.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let folders = [own] + path.split(separator: ":").map(String.init)
        return folders.filter { !$0.isEmpty }.map { "\($0)/\(name)" }.first(where: isExecutable)
    }

    /// The path on this machine.
    static func find() -> String? {
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return find(
            beside: own ?? CommandLine.arguments[0], path: ProcessInfo.processInfo.environment["PATH"] ?? "",
            isExecutable: FileManager.default.isExecutableFile(atPath:))
    }

    /// Replaces this process. Returns only on failure.
    static func exec(_ path: String, _ arguments: [String]) -> Int32 {
        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
        words.append(nil)
        execv(path, words)
        return errno
    }
}
