import FoundationEssentials
import Testing

@testable import Providers

struct ProviderRequestBatchTests {
    private let id = UUID(uuidString: "6F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A")!

    @Test func `requests round-trip, each with the fields of its template`() {
        var batch = ProviderRequestBatch()
        let template = ProviderRequestBatch.HeaderTemplate(
            shared: [ProviderHeader("a", "1")], perRequestFields: ["x", "y"])
        batch.begin(template)
        for number in 0..<3 {
            batch.begin(template)
            batch.write("/")
            batch.write("\(number)")
            batch.endValue()
            batch.write(id)
            batch.endValue()
            batch.write("")
            batch.endValue()
            batch.endRequest(body: [UInt8(number)])
        }
        batch.begin(ProviderRequestBatch.HeaderTemplate(shared: []))
        batch.write("/last")
        batch.endValue()
        batch.endRequest(body: [])
        #expect(batch.count == 4)
        #expect(batch.templates.count == 2)
        #expect(
            batch[1]
                == ProviderRequest(
                    path: "/1",
                    headers: [
                        ProviderHeader("x", "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a", neverIndexed: true),
                        ProviderHeader("y", "", neverIndexed: true), ProviderHeader("a", "1"),
                    ], body: [1]))
        #expect(batch[3] == ProviderRequest(path: "/last", headers: [], body: []))
    }

    @Test func `a shared path is not written for each request`() {
        var batch = ProviderRequestBatch(path: "/all")
        batch.begin(ProviderRequestBatch.HeaderTemplate(shared: [], perRequestFields: ["x"]))
        for text in ["a", "b"] {
            batch.write(text)
            batch.endValue()
            batch.endRequest(body: [])
        }
        #expect(
            batch[1] == ProviderRequest(path: "/all", headers: [ProviderHeader("x", "b", neverIndexed: true)], body: [])
        )
    }

    @Test func `response fields are found by name, the first of several`() {
        let fields = ResponseHeaders(nulSeparated: Array("a\0one\0b\0\0a\0two\0".utf8))
        #expect(fields["a"] == "one")
        #expect(fields["b"] == "")
        #expect(fields["one"] == nil)
        #expect(ResponseHeaders(["retry-after": "5"])["retry-after"] == "5")
        // A truncated field is ignored.
        #expect(ResponseHeaders(nulSeparated: Array("a\0one".utf8))["a"] == nil)
    }
}
