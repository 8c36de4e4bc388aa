import Foundation
import TestSupport

/// The output of deploy/compose/credentials in a temporary folder.
struct Credentials: Sendable {
    let folder: TemporaryFolder

    /// Needs bash, openssl and jq, like the script.
    static func make() async throws -> Credentials {
        let folder = try TemporaryFolder()
        let process = try ChildProcess(
            executable: "\(Repository.root)/deploy/compose/credentials", [folder.path],
            environment: [
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
                "PUSHCTL": ChildProcess.product("pushctl"),
            ])
        let code = await process.exit()
        guard code == 0 else { throw ScriptFailure(code: code, output: process.errors) }
        // The job `console-keys` writes these files, and needs a database.
        for name in ["console-rules-key", "console-registry-key"] { try folder.write(name, "hgk_test") }
        return Credentials(folder: folder)
    }

    struct ScriptFailure: Error {
        let code: Int32?
        let output: String
    }

    /// Maps a path in the image to a local path.
    @Sendable func translate(_ value: String) -> String {
        value.replacing("/run/heliograph", with: folder.path)
            .replacing("/var/lib/heliograph", with: folder.path)
            .replacing("/usr/share/heliograph/RuleSets", with: "\(Repository.root)/Services/Rules/RuleSets")
            .replacing("/usr/share/heliograph/Services", with: "\(Repository.root)/Services")
    }
}
