import Testing

/// What the scripts ask of pushctl.
@Suite struct ScriptTests {
    /// The commands that read the apps file, which a container of tools has no variable for.
    private static let readers = ["topology", "token", "publish", "channels", "topics"]

    /// A script's calls of pushctl, each as the words after its name; a line that goes on is one with the next.
    private func calls(in path: String) throws -> [[String]] {
        let lines = try Repository.text(path).replacing("\\\n", with: " ").split(separator: "\n")
        var calls: [[String]] = []
        for line in lines {
            guard let call = line.firstMatch(of: #/^[^#]*pushctl[)}]?"? (.+)/#) else { continue }
            calls.append(call.1.split(separator: " ").map(String.init))
        }
        return calls
    }

    @Test func `whoever has pushctl read the apps file says where it is`() throws {
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
}
