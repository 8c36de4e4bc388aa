package import ServiceKit
package import ServiceLifecycle
package import TraceExport
import HTTPSFetch

/// The tracer of a service, and the exporter of its spans.
package struct TracingAssembly: Sendable {
    /// `nil` without a receiver. Then no span is created.
    package var tracer: SpanTracer?
    /// Run them first, so that they stop last and send the spans of the other services.
    package var services: [any Service] = []
}

extension ServiceContext {
    package func tracing() throws(ConfigurationError) -> TracingAssembly {
        let (traces, base) = (
            try settings.optionalString(.traceSignalEndpoint), try settings.optionalString(.traceEndpoint)
        )
        let headers = try settings.optionalString(.traceHeaders)
        let endpoint: TraceEndpoint?
        do throws(TraceEndpoint.MalformedHeaders) {
            endpoint = try TraceEndpoint(traces: traces, base: base, headers: headers)
        } catch {
            throw ConfigurationError(
                "\(ConfigurationKey.traceHeaders.name): its value is not of the form name=value,name2=value2")
        }
        guard let endpoint else { return TracingAssembly() }
        let client = HTTPSFetch(
            caFile: try settings.optionalString(.traceCertificate), timeout: .seconds(10),
            allowsPlainHTTP: try settings.boolean(.allowPlaintext))
        let service = try settings.optionalString(.traceServiceName) ?? name
        let exporter = SpanExporter(
            to: endpoint, of: TraceResource(service: service, instance: instance, version: Build.version),
            over: client, logger: logger)
        let ratio = Double(try settings.string(.traceRatio)) ?? 1
        return TracingAssembly(
            tracer: SpanTracer(sampler: TraceSampler(ratio: ratio), finish: exporter.add), services: [exporter])
    }
}
