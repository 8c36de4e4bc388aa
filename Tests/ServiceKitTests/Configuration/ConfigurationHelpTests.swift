import ServiceConnections
import Testing

@testable import ServiceKit

@Suite struct ConfigurationHelpTests {
    private let keys: [ConfigurationKey] =
        .amqp + .postgres + [
            ConfigurationKey("SAMPLE_PORT", .port, default: "8080", summary: "A port."),
            ConfigurationKey("SAMPLE_KEY", required: true, secret: true, summary: "A key."),
        ]

    @Test func `the help lists each key with its kind, default and summary`() {
        let lines = keys.help.split(separator: "\n").map { $0.drop { $0 == " " } }
        #expect(lines.contains { $0.wholeMatch(of: /SAMPLE_PORT +A port\./) != nil })
        #expect(lines.contains("a port (1–65535, or 0 for any free one); default 8080"))
        #expect(
            lines.contains {
                $0.wholeMatch(of: /SAMPLE_KEY +A key\. Required\. Secret: or a file named by SAMPLE_KEY_FILE\./) != nil
            })
    }

    @Test func `a key of two groups is listed once`() {
        #expect(keys.help.matches(of: /HELIOGRAPH_ALLOW_PLAINTEXT/).count == 1)
    }

    @Test func `a secret key has a second name for a file, and the shared names include those of all executables`() {
        #expect(keys.acceptedNames.isSuperset(of: ["SAMPLE_PORT", "SAMPLE_KEY", "SAMPLE_KEY_FILE", "AMQP_URL_FILE"]))
        #expect(!keys.acceptedNames.contains("SAMPLE_PORT_FILE"))
        #expect([ConfigurationKey].sharedNames.isSuperset(of: ["LOG_LEVEL", "AMQP_URL_FILE"]))
        #expect(![ConfigurationKey].sharedNames.contains("SAMPLE_PORT"))
    }
}
