import Foundation

/// A temporary certificate authority and certificates signed by it: ECDSA P-256, valid for two days, as PEM files in a
/// temporary folder.
package struct TestCertificates: Sendable {
    package let directory: String

    /// The authority's certificate, for clients to trust.
    package var authorityFile: String { file("authority.pem") }
    /// The server certificate for `hosts`.
    package var serverCertificateFile: String { file("server.pem") }
    package var serverKeyFile: String { file("server.key") }
    package var clientCertificateFile: String { file("client.pem") }
    package var clientKeyFile: String { file("client.key") }

    /// One set per test process, for `localhost` and the loopback addresses. Removed at exit.
    package static func shared() throws -> TestCertificates {
        try sharedResult.get()
    }

    private static let sharedResult = Result { () throws -> TestCertificates in
        let certificates = try TestCertificates(hosts: ["localhost", "127.0.0.1", "::1"])
        sharedDirectory = certificates.directory
        atexit { TestCertificates.removeShared() }
        return certificates
    }

    /// Written once, in the initialization of `sharedResult`, and read only at exit.
    nonisolated(unsafe) private static var sharedDirectory: String?

    private static func removeShared() {
        // At exit an error cannot be reported.
        if let sharedDirectory { try? FileManager.default.removeItem(atPath: sharedDirectory) }
    }

    /// Creates an authority, a server certificate for `hosts` (names or addresses) and a client certificate.
    package init(hosts: [String]) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("certificates-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        directory = folder.path
        try "[req]\ndistinguished_name=name\n[name]\n".write(
            toFile: file("request.cnf"), atomically: true, encoding: .utf8)
        try makeAuthority()
        let names = hosts.map {
            $0.contains(":") || $0.allSatisfy { "0123456789.".contains($0) } ? "IP:\($0)" : "DNS:\($0)"
        }
        try sign("server", subject: hosts.first ?? "server", usage: "serverAuth", names: names)
        try sign("client", subject: "client", usage: "clientAuth", names: ["DNS:client"])
    }

    /// Deletes the folder.
    package func remove() throws {
        try FileManager.default.removeItem(atPath: directory)
    }

    private func file(_ name: String) -> String { "\(directory)/\(name)" }

    private func makeAuthority() throws {
        try makeKey("authority")
        try openssl(
            "req", "-x509", "-new", "-config", file("request.cnf"), "-key", file("authority.key"), "-days", "2",
            "-subj", "/CN=Test authority \(UUID())", "-addext", "basicConstraints=critical,CA:TRUE", "-addext",
            "keyUsage=critical,keyCertSign,cRLSign", "-addext", "subjectKeyIdentifier=hash", "-out", authorityFile)
    }

    private func makeKey(_ name: String) throws {
        try openssl(
            "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file("\(name).key"))
    }

    private func sign(_ name: String, subject: String, usage: String, names: [String]) throws {
        try makeKey(name)
        try openssl(
            "req", "-new", "-config", file("request.cnf"), "-key", file("\(name).key"), "-subj", "/CN=\(subject)",
            "-out", file("\(name).csr"))
        let extensions = """
            basicConstraints=critical,CA:FALSE
            keyUsage=critical,digitalSignature
            extendedKeyUsage=\(usage)
            subjectAltName=\(names.joined(separator: ","))

            """
        try extensions.write(toFile: file("\(name).ext"), atomically: true, encoding: .utf8)
        try openssl(
            "x509", "-req", "-in", file("\(name).csr"), "-CA", authorityFile, "-CAkey", file("authority.key"),
            "-CAcreateserial", "-days", "2", "-extfile", file("\(name).ext"), "-out", file("\(name).pem"))
    }

    private func openssl(_ arguments: String...) throws {
        try Command("openssl", arguments).runBlocking()
    }
}
