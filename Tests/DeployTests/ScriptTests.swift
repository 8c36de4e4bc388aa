import Foundation
import Testing
import TestSupport

/// The scripts' calls of pushctl.
@Suite struct ScriptTests {
    /// Commands that read the apps file. The tools container does not set HELIOGRAPH_APPS.
    private static let readers = ["topology", "token", "publish", "channels", "topics"]

    /// The pushctl calls of a script as words, with continued lines joined.
    private func calls(in path: String) throws -> [[String]] {
        let lines = try Repository.text(path).replacing("\\\n", with: " ").split(separator: "\n")
        var calls: [[String]] = []
        for line in lines {
            guard let call = line.firstMatch(of: #/^[^#]*pushctl[)}]?"? (.+)/#) else { continue }
            calls.append(call.1.split(separator: " ").map(String.init))
        }
        return calls
    }

    @Test func `scripts pass --apps to every command that reads the apps file`() throws {
        let scripts = [
            "deploy/compose/credentials", "deploy/compose/demo",
            "deploy/local/lib/demo.sh", "deploy/local/lib/stack.sh",
        ]
        for script in scripts {
            let readers = try calls(in: script).filter { Self.readers.contains($0[0]) }
            #expect(readers.count >= 2, "\(script)")
            for call in readers {
                #expect(call.contains("--apps"), "\(script): pushctl \(call.joined(separator: " "))")
            }
        }
    }

    /// Other users of a machine can read process arguments.
    @Test func `psql in the logins script gets no password in its arguments`() async throws {
        let credentials = try await Credentials.make()
        let tools = try TemporaryFolder()
        let calls = try tools.write("calls", "")
        let psql = try tools.write("psql", "#!/bin/bash\nprintf '%s\\n' \"$@\" >>\(calls)\ncat >>\(calls)\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: psql)
        let script = try ChildProcess(
            executable: "\(Repository.root)/deploy/compose/logins", [credentials.folder.path],
            environment: ["PATH": "\(tools.path):/usr/bin:/bin"])
        #expect(await script.exit() == 0, "\(script.errors)")
        let said = try String(contentsOfFile: calls, encoding: .utf8)
        #expect(said.matches(of: #/postgresql:\/\/postgres@postgres:5432\/heliograph/#).count == 4)
        for name in ["administrator", "rules", "token-registry", "feedback", "events-api"] {
            let password = try String(contentsOfFile: "\(credentials.folder.path)/database-\(name)", encoding: .utf8)
            #expect(!said.contains(password.trimmingCharacters(in: .whitespacesAndNewlines)), "\(name)")
        }
    }

    @Test func `local services get their passwords from files, and SQL goes to standard input`() throws {
        let stack = try Repository.text("deploy/local/lib/stack.sh")
        let environment = try #require(stack.firstMatch(of: #/service_environment\(\) \{([\s\S]*?)\n\}/#)?.1)
        #expect(environment.contains("AMQP_URL_FILE=") && environment.contains("DATABASE_URL_FILE="))
        #expect(!environment.contains(#/echo "[A-Z_]*(URL|KEY)=[^"]*secret /#))
        let database = try Repository.text("deploy/local/lib/database.sh")
        let administer = try #require(database.firstMatch(of: #/\nadminister_database\(\) \{([\s\S]*?)\n\}/#)?.1)
        #expect(administer.contains(" -f -") && !administer.contains("-c "))
        for script in ["deploy/local/lib/demo.sh", "deploy/compose/demo"] {
            #expect(!(try Repository.text(script).contains(#"-H "Authorization"#)), "\(script)")
        }
    }

    @Test func `only progress, status and tables write control characters`() throws {
        let sources =
            Repository.files(below: "Services", suffix: ".swift")
            + Repository.files(below: "Shared", suffix: ".swift")
        #expect(sources.count > 200)
        let writers = try sources.filter { try Repository.text($0).contains(#/\\u\{0*1[bB]\}/#) }
        #expect(
            writers == [
                "Services/Pushctl/Commands/StatusCommand.swift", "Services/Pushctl/Support/ProgressLine.swift",
                "Shared/Primitives/TextTable.swift",
            ])
    }

    @Test(arguments: [("System", 20), ("Containers", 5)])
    func `the Python packages of the tests have exact versions`(folder: String, count: Int) throws {
        let lines = try Repository.text("Tests/\(folder)/requirements.txt").split(separator: "\n")
            .filter { !$0.hasPrefix("#") }
        #expect(lines.count >= count)
        for line in lines { #expect(line.contains(#/^[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*$/#), "\(line)") }
    }
}
