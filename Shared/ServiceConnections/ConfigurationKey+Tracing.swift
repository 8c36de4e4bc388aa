package import ServiceKit
import HTTPSFetch

/// The keys of traces, with the names and meanings of OpenTelemetry
/// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
extension ConfigurationKey {
    package static let traceEndpoint = ConfigurationKey(
        "OTEL_EXPORTER_OTLP_ENDPOINT", .url(schemes: ["https", "http"]),
        summary: "The receiver of traces (OTLP over HTTP), to which /v1/traces is appended; without it there are none.",
        check: { url, values in problem(OTLP.endpoint, url, values) })
    package static let traceSignalEndpoint = ConfigurationKey(
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", .url(schemes: ["https", "http"]),
        summary: "The receiver's complete URL for traces; takes precedence over OTEL_EXPORTER_OTLP_ENDPOINT.",
        check: { url, values in problem(OTLP.signalEndpoint, url, values) })
    package static let traceHeaders = ConfigurationKey(
        "OTEL_EXPORTER_OTLP_HEADERS", secret: true,
        summary: "Headers of the requests to the receiver: name=value,name2=value2.")
    package static let traceCertificate = ConfigurationKey(
        "OTEL_EXPORTER_OTLP_CERTIFICATE", .file,
        summary: "PEM certificates to verify the receiver with; the system's when absent.")
    package static let traceRatio = ConfigurationKey(
        "OTEL_TRACES_SAMPLER_ARG", default: "1",
        summary: "The share of sampled traces, from 0 to 1; of traces that an upstream begins, the upstream decides.",
        check: { text, _ in
            Double(text).map((0...1).contains) == true
                ? nil : "OTEL_TRACES_SAMPLER_ARG: “\(text)” is not a number from 0 to 1"
        })
    package static let traceServiceName = ConfigurationKey(
        "OTEL_SERVICE_NAME", summary: "The service's name in traces; the executable's when absent.")

    private enum OTLP {
        static let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
        static let signalEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    }

    private static func problem(_ name: String, _ url: String, _ values: [String: String]) -> String? {
        let isAllowed = TransportSecurity.isPlaintextAllowed(values)
        return HTTPSFetch.problem(with: url, allowsPlainHTTP: isAllowed).map { "\(name): \($0)" }
    }
}

extension [ConfigurationKey] {
    package static let tracing: [ConfigurationKey] = [
        .traceEndpoint, .traceSignalEndpoint, .traceHeaders, .traceCertificate, .traceRatio, .traceServiceName,
    ]
}
