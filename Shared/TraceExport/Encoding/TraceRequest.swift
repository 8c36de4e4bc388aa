import Primitives
import PushProtocol
import Tracing

/// The origin of spans: OpenTelemetry's resource, with attributes such as `service.name`.
package struct TraceResource: Hashable, Sendable {
    /// In the order of writing.
    package var attributes: [Attribute]

    package struct Attribute: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    /// - Parameters:
    ///   - service: `service.name`.
    ///   - instance: `service.instance.id`.
    ///   - version: `service.version`.
    package init(service: String, instance: String, version: String) {
        attributes = [
            Attribute(name: "service.name", value: service),
            Attribute(name: "service.namespace", value: "heliograph"),
            Attribute(name: "service.instance.id", value: instance),
            Attribute(name: "service.version", value: version),
            Attribute(name: "telemetry.sdk.language", value: "swift"),
            Attribute(name: "telemetry.sdk.name", value: "heliograph"),
            Attribute(name: "telemetry.sdk.version", value: version),
        ]
    }
}

/// Encodes `opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest` (opentelemetry-proto 1.x,
/// `trace/v1/trace.proto`, `common/v1/common.proto`).
package enum TraceRequest {
    /// The longest text of an attribute in UTF-8 bytes. Longer ones are cut.
    static let maximumText = 1024
    /// Bit 0 of `Span.flags`. Bits 8 and 9 stay zero: they are optional.
    private static let sampledFlag: UInt32 = 1

    package static func encode(_ spans: [SpanRecord], of resource: TraceResource, scope: String) -> [UInt8] {
        var request = ProtobufWriter()
        // ResourceSpans
        request.message(1) { group in
            group.message(1) { resourceMessage in
                for attribute in resource.attributes {
                    write(attribute.name, .string(attribute.value), as: 1, to: &resourceMessage)
                }
            }
            // ScopeSpans
            group.message(2) { scopeSpans in
                scopeSpans.message(1) { $0.string(1, scope) }
                for span in spans { scopeSpans.message(2) { write(span, to: &$0) } }
            }
        }
        return request.bytes
    }

    private static func write(_ span: SpanRecord, to message: inout ProtobufWriter) {
        message.bytes(1, bigEndian: span.trace.high, span.trace.low)
        message.bytes(2, bigEndian: span.id.value)
        message.string(3, span.traceState ?? "")
        if let parent = span.parent { message.bytes(4, bigEndian: parent.value) }
        message.string(5, span.name)
        message.varint(6, span.kind.number)
        message.fixed64(7, span.start)
        message.fixed64(8, span.end)
        write(span.attributes, as: 9, to: &message)
        for event in span.events {
            message.message(11) { nested in
                nested.fixed64(1, event.nanosecondsSinceEpoch)
                nested.string(2, event.name)
                write(event.attributes, as: 3, to: &nested)
            }
        }
        for link in span.links {
            message.message(13) { nested in
                nested.bytes(1, bigEndian: link.target.trace.high, link.target.trace.low)
                nested.bytes(2, bigEndian: link.target.span.value)
                write(link.attributes, as: 4, to: &nested)
                nested.fixed32(6, link.target.isSampled ? sampledFlag : 0)
            }
        }
        if let status = span.status {
            message.message(15) { nested in
                nested.string(2, status.message ?? "")
                nested.varint(3, status.code.number)
            }
        }
        message.fixed32(16, span.isSampled ? sampledFlag : 0)
    }

    /// Writes attributes in the order of their names.
    private static func write(_ attributes: SpanAttributes, as field: UInt64, to message: inout ProtobufWriter) {
        var all: [(name: String, value: SpanAttribute)] = []
        attributes.forEach { all.append(($0, $1)) }
        for (name, value) in all.sorted(by: { $0.name < $1.name }) { write(name, value, as: field, to: &message) }
    }

    /// Writes a `KeyValue`.
    private static func write(
        _ name: String, _ value: SpanAttribute, as field: UInt64, to message: inout ProtobufWriter
    ) {
        message.message(field) { pair in
            pair.string(1, name)
            pair.message(2) { write(value, to: &$0) }
        }
    }

    /// Writes an `AnyValue`.
    private static func write(_ value: SpanAttribute, to message: inout ProtobufWriter) {
        switch value {
        case .string(let text): message.alternative(1, string: text.truncated(toUTF8: maximumText))
        case .bool(let value): message.alternative(2, varint: value ? 1 : 0)
        case .int32(let number): message.alternative(3, varint: UInt64(bitPattern: Int64(number)))
        case .int64(let number): message.alternative(3, varint: UInt64(bitPattern: number))
        case .double(let number): message.alternative(4, double: number)
        case .stringArray(let texts): write(texts.map(SpanAttribute.string), to: &message)
        case .boolArray(let values): write(values.map(SpanAttribute.bool), to: &message)
        case .int32Array(let numbers): write(numbers.map(SpanAttribute.int32), to: &message)
        case .int64Array(let numbers): write(numbers.map(SpanAttribute.int64), to: &message)
        case .doubleArray(let numbers): write(numbers.map(SpanAttribute.double), to: &message)
        case .stringConvertible(let value): message.alternative(1, string: "\(value)".truncated(toUTF8: maximumText))
        case .stringConvertibleArray(let values): write(values.map { .string("\($0)") }, to: &message)
        // The library reserves further cases.
        default: message.alternative(1, string: "")
        }
    }

    /// Writes an `ArrayValue`.
    private static func write(_ values: [SpanAttribute], to message: inout ProtobufWriter) {
        message.message(5) { list in
            for value in values { list.message(1) { write(value, to: &$0) } }
        }
    }
}

extension SpanKind {
    /// The number of `Span.SpanKind`.
    fileprivate var number: UInt64 {
        switch self {
        case .internal: 1
        case .server: 2
        case .client: 3
        case .producer: 4
        case .consumer: 5
        }
    }
}

extension SpanStatus.Code {
    /// The number of `Status.StatusCode`.
    fileprivate var number: UInt64 {
        switch self {
        case .ok: 1
        case .error: 2
        }
    }
}
