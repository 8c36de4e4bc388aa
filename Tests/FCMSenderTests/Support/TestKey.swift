import CryptoExtras

/// A signing key for this test run.
enum TestKey {
    static let rsa: String = {
        do {
            return try _RSA.Signing.PrivateKey(keySize: .bits2048).pemRepresentation
        } catch {
            preconditionFailure("no RSA key could be made: \(error)")
        }
    }()
}
