import Testing

@testable import Pushctl

/// The location of the `rules` executable.
@Suite struct RulesExecutableTests {
    @Test(
        arguments: [
            ("/opt/pushctl", "/usr/bin:/bin", ["/opt/rules", "/bin/rules"], "/opt/rules"),
            ("/opt/pushctl", "/usr/bin:/bin", ["/bin/rules"], "/bin/rules"),
            ("/opt/pushctl", "/usr/bin::/bin", ["/bin/rules"], "/bin/rules"),
            ("pushctl", "/usr/bin", ["/usr/bin/rules"], "/usr/bin/rules"),
            ("/opt/pushctl", "", [], nil),
        ] as [(String, String, [String], String?)]) func `the executable is beside pushctl or in PATH`(
            executable: String, path: String, there: [String], found: String?
        )
    {
        #expect(RulesExecutable.find(beside: executable, path: path, isExecutable: there.contains) == found)
    }
}
