import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// Targets of FCM messages (ProviderFacts.md §B.2, §B.3).
@Suite struct FCMAddressTests {
    private func address(_ text: String, _ kind: Push.Address?) -> Result<FCMAddress, LocalRejection> {
        Result { () throws(LocalRejection) in try FCMAddress(.sample(token: text, address: kind)) }
    }

    private func rejection(_ text: String, _ kind: Push.Address?) -> LocalRejection? {
        guard case .failure(let rejection) = address(text, kind) else { return nil }
        return rejection
    }

    @Test func `tokens and FIDs have their own member, unchanged`() throws {
        #expect(try address("a:B_c", nil).get() == FCMAddress(.sample(token: "a:B_c")))
        #expect(try address("f1", .fid).get().member == "fid")
        for kind in [nil, Push.Address.fid] {
            for text in ["", "a b", "ü", String(repeating: "x", count: 4097)] {
                #expect(rejection(text, kind) == LocalRejection("malformed-token", suspectToken: true))
            }
        }
    }

    @Test func `a topic is sent without the SDKs' prefix`() throws {
        for text in ["news", "/topics/news"] { #expect(try address(text, .topic).get().text == "news") }
        #expect(try address("a-_.~%9Z" + String(repeating: "x", count: 892), .topic).get().text.count == 900)
        for text in ["", "/topics/", "a/b", "a b", "ü", "/topics//topics/a", String(repeating: "x", count: 901)] {
            #expect(rejection(text, .topic) == LocalRejection("malformed-topic"))
        }
    }

    @Test(arguments: [
        "'a' in topics", "'a' in topics && 'b' in topics", "!('a' in topics)", "!!'a' in topics",
        "('a' in topics || 'b' in topics) && !'c' in topics", " 'a'  in  topics||'b' in topics ",
        "'a' in topics&&'b' in topics&&'c' in topics&&'d' in topics&&'e' in topics",
    ]) func `a condition is sent unchanged`(text: String) throws {
        #expect(try address(text, .condition).get() == address(text, .condition).get())
        #expect(try address(text, .condition).get().text == text)
    }

    @Test(arguments: [
        "", "a", "'a'", "'a' in topic", "'a' in topics &&", "&& 'a' in topics", "('a' in topics", "'a' in topics)",
        "'a' in topics 'b' in topics", "'a in topics", "'' in topics", "'a b' in topics",
        "'a' in topics & 'b' in topics",
        "!", "()",
        "'a' in topics&&'b' in topics&&'c' in topics&&'d' in topics&&'e' in topics||'f' in topics",
        String(repeating: "(", count: 2000) + "'a' in topics" + String(repeating: ")", count: 2000),
    ]) func `invalid conditions and those with more than five topics are rejected`(text: String) {
        #expect(rejection(text, .condition) == LocalRejection("malformed-condition"))
    }
}
