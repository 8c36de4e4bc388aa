import Foundation

/// The address of a receiver and the headers of requests to it, from OpenTelemetry's variables.
package struct TraceEndpoint: Sendable {
    package let url: String
    /// May contain credentials: not for logs.
    package let headers: [(name: String, value: String)]

    /// Returns `nil` if neither address is set.
    ///
    /// - Parameters:
    ///   - traces: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, used as it is.
    ///   - base: `OTEL_EXPORTER_OTLP_ENDPOINT`, to which `/v1/traces` is appended.
    ///   - headers: `OTEL_EXPORTER_OTLP_HEADERS`.
    /// - Throws: ``MalformedHeaders``.
    package init?(traces: String?, base: String?, headers: String?) throws(MalformedHeaders) {
        if let traces {
            url = traces
        } else if let base {
            url = (base.hasSuffix("/") ? String(base.dropLast()) : base) + "/v1/traces"
        } else {
            return nil
        }
        self.headers = try Self.parse(headers ?? "")
    }

    package struct MalformedHeaders: Error, Hashable {}

    /// Reads `name=value,name2=value2` with percent-encoded values (OpenTelemetry, Protocol Exporter).
    static func parse(_ text: String) throws(MalformedHeaders) -> [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        for part in text.split(separator: ",") {
            let part = part.trimmed
            if part.isEmpty { continue }
            guard let equals = part.firstIndex(of: "="), part.startIndex < equals,
                let value = part[part.index(after: equals)...].trimmed.removingPercentEncoding
            else { throw MalformedHeaders() }
            headers.append((String(part[..<equals].trimmed), value))
        }
        return headers
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = self
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
