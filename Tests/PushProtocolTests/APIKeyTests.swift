import PushProtocol
import Testing
import TestSupport

@Suite struct APIKeyTests {
    @Test func `a generated key is parsed, and a malformed one is not`() throws {
        var random = SplitMix(seed: 7)
        let key = APIKey(using: &random)
        let other = APIKey(using: &random)
        #expect(key.secret.hasPrefix("hgk_\(key.id)_") && key.id.utf8.count == APIKey.idLength)
        #expect(key.secret.utf8.count == 4 + 12 + 1 + 64)
        #expect(APIKey(key.secret) == key && key != other && key.id != other.id)
        let text = key.secret
        for bad in [
            "", "hgk_", String(text.dropLast()), text + "0", text.uppercased(), " " + text.dropFirst(),
            text.replacing("_", with: "-"), String(text.dropLast()) + "g", String(text.dropLast()) + "é",
            "hgk_\(key.id.dropLast())!_\(text.suffix(64))",
        ] { #expect(APIKey(bad) == nil) }
    }

    @Test func `only the key's own digest matches`() throws {
        var random = SplitMix(seed: 7)
        let key = APIKey(using: &random)
        #expect(key.digest.count == 32 && key.matches(digest: key.digest))
        #expect(!APIKey(using: &random).matches(digest: key.digest))
        var digest = key.digest
        digest[31] ^= 1
        #expect(
            !key.matches(digest: digest) && !key.matches(digest: [])
                && !key.matches(digest: Array(key.digest.dropLast())))
    }

    @Test func `a key does not print its secret`() {
        var random = SplitMix(seed: 7)
        let key = APIKey(using: &random)
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped] { #expect(!text.contains(key.secret.suffix(8))) }
    }
}
