import CryptoExtras

/// A signing key for this run of the tests.
enum TestKey {
    static let rsa: String = {
        do {
            return try _RSA.Signing.PrivateKey(keySize: .bits2048).pemRepresentation
        } catch {
            preconditionFailure("no RSA key could be made: \(error)")
        }
    }()
}
