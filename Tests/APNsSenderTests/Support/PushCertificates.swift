import Foundation
import TestSupport

/// Push certificates like Apple's, signed by the shared test authority.
struct PushCertificates {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    func path(_ name: String) -> String { "\(folder.path)/\(name)" }

    /// Writes `<name>.pem` and `<name>.key`: a client certificate with Apple's topics extension, or without one if
    /// `topics` is empty.
    func issue(_ name: String, topics: [String] = [], days: Int = 2) throws {
        let authority = try TestCertificates.shared()
        var extensions = "extendedKeyUsage=clientAuth\n"
        if !topics.isEmpty {
            extensions += "1.2.840.113635.100.6.3.6=ASN1:SEQUENCE:topics\n[topics]\n"
            for (place, topic) in topics.enumerated() {
                extensions += "topic\(place)=UTF8:\(topic)\nkinds\(place)=SEQUENCE:kinds\n"
            }
            extensions += "[kinds]\nkind=UTF8:app\n"
        }
        try folder.write("\(name).ext", extensions)
        try folder.write("request.cnf", "[req]\ndistinguished_name=name\n[name]\n")
        try openssl(
            "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path("\(name).key"))
        try openssl(
            "req", "-new", "-config", path("request.cnf"), "-key", path("\(name).key"), "-subj",
            "/CN=Apple Push Services: \(name)", "-out", path("\(name).csr"))
        try openssl(
            "x509", "-req", "-in", path("\(name).csr"), "-CA", authority.authorityFile, "-CAkey",
            "\(authority.directory)/authority.key", "-set_serial", String(Int.random(in: 1...Int.max)), "-days",
            String(days), "-extfile", path("\(name).ext"), "-out", path("\(name).pem"))
    }

    /// Replaces a certificate and its key with another's.
    func replace(_ name: String, with other: String) throws {
        let (certificate, key) = try texts(other)
        try folder.write("\(name).pem", certificate)
        try folder.write("\(name).key", key)
    }

    func texts(_ name: String) throws -> (certificate: String, key: String) {
        (
            try String(contentsOfFile: path("\(name).pem"), encoding: .utf8),
            try String(contentsOfFile: path("\(name).key"), encoding: .utf8)
        )
    }

    private func openssl(_ arguments: String...) throws { try Command("openssl", arguments).runBlocking() }
}
