import Foundation
import TestSupport

/// What deploy/compose/credentials makes, in a folder of the test's own.
struct Credentials: Sendable {
    let folder: TemporaryFolder

    /// Needs bash, openssl and jq, as the script does.
    static func make() async throws -> Credentials {
        let folder = try TemporaryFolder()
        let process = try ChildProcess(
            executable: "\(Repository.root)/deploy/compose/credentials", [folder.path],
            environment: [
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
                "PUSHCTL": ChildProcess.product("pushctl"),
            ])
        let code = await process.exit()
        guard code == 0 else { throw Failed(code: code, said: process.errors) }
        return Credentials(folder: folder)
    }

    struct Failed: Error {
        let code: Int32?
        let said: String
    }

    /// A path in the image as the path here.
    @Sendable func translate(_ value: String) -> String {
        value.replacing("/run/heliograph", with: folder.path)
            .replacing("/usr/share/heliograph/RuleSets", with: "\(Repository.root)/Services/Rules/RuleSets")
            .replacing("/usr/share/heliograph/Services", with: "\(Repository.root)/Services")
    }
}
