import PushProtocol
import Testing
import Tracing

@testable import TraceExport

/// Requests and responses in Protocol Buffers. The expected bytes are those of PyPI `opentelemetry-proto` 1.45.2.
struct EncodingTests {
    /// `ExportTraceServiceRequest.SerializeToString(deterministic=True)` of ``spans``.
    private static let request = """
        0a81050ae2010a170a0c736572766963652e6e616d6512070a0572756c65730a210a11736572766963652e6e616d6573
        70616365120c0a0a68656c696f67726170680a1f0a13736572766963652e696e7374616e63652e696412080a06686f73
        742d310a1a0a0f736572766963652e76657273696f6e12070a05302e312e300a210a1674656c656d657472792e73646b
        2e6c616e677561676512070a0573776966740a220a1274656c656d657472792e73646b2e6e616d65120c0a0a68656c69
        6f67726170680a200a1574656c656d657472792e73646b2e76657273696f6e12070a05302e312e301299030a0c0a0a68
        656c696f677261706812ce020a100af7651916cd43dd8448eb211c80319c1208b7ad6b71692033311a0876656e646f72
        3d31220800f067aa0ba902b72a1470726f636573732072756c65732e6576656e747330053901008bd799839e184180b2
        71e699839e184a0e0a06612e7465787412040a02c3a94a170a08622e6e756d626572120b18ffffffffffffffffff014a
        0b0a05632e796573120210014a0a0a04642e6e6f120210004a130a06652e68616c66120921000000000000e03f4a160a
        07662e7465787473120b2a090a030a01780a020a004a180a09672e6e756d62657273120b2a090a0218000a0318ac025a
        2e0902008bd799839e181209657863657074696f6e1a180a0e657863657074696f6e2e7479706512060a044f6f70736a
        210a104bf92f3577b34da6a3ce929d0e0e4736120800f067aa0ba902b735010000007a10120c556e7265676973746572
        6564180285010100000012380a100af7651916cd43dd8448eb211c80319c120800000000000000012a06646563696465
        3001390100000000000000410100000000000000
        """

    private static let trace = TraceID(high: 0x0af7_6519_16cd_43dd, low: 0x8448_eb21_1c80_319c)!

    private static let spans = [
        SpanRecord(
            trace: trace, id: SpanID(0xb7ad_6b71_6920_3331)!, parent: SpanID(0x00f0_67aa_0ba9_02b7),
            traceState: "vendor=1", name: "process rules.events", kind: .consumer, start: 1_774_000_000_000_000_001,
            end: 1_774_000_000_250_000_000,
            attributes: [
                "g.numbers": .int64Array([0, 300]), "f.texts": .stringArray(["x", ""]), "e.half": .double(0.5),
                "d.no": .bool(false), "c.yes": .bool(true), "b.number": .int64(-1), "a.text": .string("é"),
            ],
            events: [
                SpanEvent(
                    name: "exception",
                    at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 1_774_000_000_000_000_002),
                    attributes: ["exception.type": "Oops"])
            ],
            links: [
                SpanRecordLink(
                    target: TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")!, attributes: [:])
            ],
            status: SpanStatus(code: .error, message: "Unregistered"), isSampled: true),
        SpanRecord(
            trace: trace, id: SpanID(1)!, parent: nil, traceState: nil, name: "decide", kind: .internal, start: 1,
            end: 1, attributes: [:], events: [], links: [], status: nil, isSampled: false),
    ]

    @Test func `a request has the bytes of the official encoder`() {
        let resource = TraceResource(service: "rules", instance: "host-1", version: "0.1.0")
        let bytes = TraceRequest.encode(Self.spans, of: resource, scope: "heliograph")
        let expected = Self.request.split(separator: "\n").joined()
        #expect(bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() == expected)
    }

    @Test func `a long text is cut to whole characters`() {
        var span = Self.spans[1]
        func size(_ text: String) -> Int {
            span.attributes = ["a": .string(text)]
            return TraceRequest.encode([span], of: TraceResource(service: "", instance: "", version: ""), scope: "")
                .count
        }
        let longest = size(String(repeating: "a", count: TraceRequest.maximumText))
        #expect(size(String(repeating: "a", count: 5000)) == longest)
        // 341 characters of three bytes fit.
        #expect(size(String(repeating: "€", count: 5000)) == longest - 1)
    }

    @Test func `the number of rejected spans is read from a response`() {
        // `ExportTraceServiceResponse` with 300 rejected spans and a message.
        let response: [UInt8] = [0x0a, 0x07, 0x08, 0xac, 0x02, 0x12, 0x02, 0x6e, 0x6f]
        #expect(TraceResponse.rejectedSpans(in: response) == 300)
        // An unknown field of each wire type comes before.
        let longer = [0x10, 0x96, 0x01, 0x1a, 0x01, 0xff, 0x25, 1, 2, 3, 4, 0x29, 1, 2, 3, 4, 5, 6, 7, 8] + response
        #expect(TraceResponse.rejectedSpans(in: longer) == 300)
    }

    @Test(arguments: [[], [0x0a], [0x0a, 0x05, 0x08], [0xff], [0x0a, 0x00], [0x0b], Array("not found".utf8)])
    func `an empty or unreadable response rejects nothing`(body: [UInt8]) {
        #expect(TraceResponse.rejectedSpans(in: body) == 0)
    }
}
