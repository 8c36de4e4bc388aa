import ServiceConnections
import ServiceKit
import Testing

@Suite struct ConfigurationReferenceTests {
    private let reference = ConfigurationReference([
        .init(
            name: "sample",
            keys: .amqp + [
                ConfigurationKey("SAMPLE_PORT", .port, default: "8080", summary: "A port."),
                ConfigurationKey("SAMPLE_KEY", required: true, secret: true, summary: "A key."),
            ])
    ])

    @Test func `the reference lists each key with its kind, default and summary`() {
        #expect(reference.markdown.contains("## sample"))
        #expect(
            reference.markdown.contains(
                "| `SAMPLE_PORT` | a port (1–65535, or 0 for any free one) | `8080` | A port. |"))
        #expect(
            reference.markdown.contains(
                "| `SAMPLE_KEY` | text |  | A key. Required. Secret: or a file named by SAMPLE_KEY_FILE. |"))
        #expect(reference.markdown.contains("`HELIOGRAPH_ADMIN_PORT`"))
    }

    @Test func `the reference knows the variables of an executable`() {
        let variables = reference.variables(of: "sample")
        #expect(
            variables.isSuperset(of: ["SAMPLE_PORT", "SAMPLE_KEY", "SAMPLE_KEY_FILE", "LOG_LEVEL", "AMQP_URL_FILE"]))
        #expect(!variables.contains("SAMPLE_PORT_FILE"))
        #expect(!reference.variables(of: "other").contains("SAMPLE_PORT"))
    }
}
