import Foundation

/// The `rules` executable, which reads rule files: it knows the language, and `pushctl` does not.
enum RulesExecutable {
    static let name = "rules"

    /// Where it is: beside this executable, or in a folder of `PATH`, whichever comes first.
    ///
    /// - Parameters:
    ///   - executable: this executable's own path.
    ///   - path: the variable `PATH`.
    static func find(beside executable: String, path: String, isExecutable: (String) -> Bool) -> String? {
        let own = executable.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let folders = [own] + path.split(separator: ":").map(String.init)
        return folders.filter { !$0.isEmpty }.map { "\($0)/\(name)" }.first(where: isExecutable)
    }

    /// Where it is on this machine.
    static func find() -> String? {
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return find(
            beside: own ?? CommandLine.arguments[0], path: ProcessInfo.processInfo.environment["PATH"] ?? "",
            isExecutable: FileManager.default.isExecutableFile(atPath:))
    }

    /// Becomes it. Returns only when that fails.
    static func become(_ path: String, _ arguments: [String]) -> Int32 {
        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
        words.append(nil)
        execv(path, words)
        return errno
    }
}
