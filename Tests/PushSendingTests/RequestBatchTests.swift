import FoundationEssentials
import PushSending
import Testing

struct RequestBatchTests {
    private let id = UUID(uuidString: "6F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A")!

    @Test func `requests read back as they were written, each as a copy of its letter`() {
        var batch = RequestBatch()
        let letter = RequestBatch.Letter(shared: [ProviderHeader("a", "1")], own: ["x", "y"])
        batch.begin(letter)
        for number in 0..<3 {
            batch.begin(letter)
            batch.write("/")
            batch.write("\(number)")
            batch.endValue()
            batch.write(id)
            batch.endValue()
            batch.write("")
            batch.endValue()
            batch.endRequest(body: [UInt8(number)])
        }
        batch.begin(RequestBatch.Letter(shared: []))
        batch.write("/last")
        batch.endValue()
        batch.endRequest(body: [])
        #expect(batch.count == 4)
        #expect(batch.letters.count == 2)
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

    @Test func `a path that all requests share is written by none of them`() {
        var batch = RequestBatch(path: "/all")
        batch.begin(RequestBatch.Letter(shared: [], own: ["x"]))
        for text in ["a", "b"] {
            batch.write(text)
            batch.endValue()
            batch.endRequest(body: [])
        }
        #expect(
            batch[1] == ProviderRequest(path: "/all", headers: [ProviderHeader("x", "b", neverIndexed: true)], body: [])
        )
    }

    @Test func `fields of an answer are found by name, the first of several`() {
        let fields = ProviderFields(nulSeparated: Array("a\0one\0b\0\0a\0two\0".utf8))
        #expect(fields["a"] == "one")
        #expect(fields["b"] == "")
        #expect(fields["one"] == nil)
        #expect(ProviderFields(["retry-after": "5"])["retry-after"] == "5")
        // What is cut off is no field.
        #expect(ProviderFields(nulSeparated: Array("a\0one".utf8))["a"] == nil)
    }
}
