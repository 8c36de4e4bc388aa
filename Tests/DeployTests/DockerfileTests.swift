import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct DockerfileTests {
    private let text: String

    init() throws { text = try Repository.text("deploy/Dockerfile").replacing("\\\n", with: " ") }

    private func words(after prefix: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasPrefix(prefix) }
            .flatMap { $0.split(whereSeparator: \.isWhitespace).map(String.init) }
    }

    @Test func `it builds every executable`() throws {
        let loop = try #require(text.firstMatch(of: #/for product in ([a-z -]+); do/#))
        #expect(Set(loop.1.split(separator: " ").map(String.init)) == (try Repository.products()))
    }

    @Test func `it runs as nobody in particular, and its health is the binary's own word`() throws {
        let final = try #require(text.range(of: "AS service")).upperBound
        let lines = text[final...].split(separator: "\n")
        #expect(lines.contains("USER 65532:65532"))
        #expect(lines.contains { $0.hasSuffix(#"CMD ["/usr/local/bin/service", "healthcheck"]"#) })
        #expect(lines.last == #"ENTRYPOINT ["/usr/local/bin/service"]"#)
        #expect(lines.contains("EXPOSE 9400"))
    }

    @Test func `every folder it copies is there, and the context lets it through`() throws {
        let ignored = try Repository.text(".dockerignore").split(separator: "\n").map(String.init)
        for line in text.split(separator: "\n") where line.hasPrefix("COPY ") && !line.contains("--from") {
            let source = String(line.split(separator: " ")[1])
            guard source != "Package.*" else { continue }
            #expect(FileManager.default.fileExists(atPath: "\(Repository.root)/\(source)"), "\(line)")
            #expect(ignored.contains("!\(source)"), "\(line)")
        }
    }

    /// Debian's packages of the libraries that our executables may be linked against.
    private static let packages = [
        "librabbitmq.so.4": "librabbitmq4", "libpq.so.5": "libpq5", "libcurl.so.4": "libcurl4",
        "libnghttp2.so.14": "libnghttp2-14", "libssl.so.3": "libssl3", "libcrypto.so.3": "libssl3",
        "libstdc++.so.6": "libstdc++6", "libjemalloc.so.2": "libjemalloc2",
    ]
    /// In every image, or linked statically in one (`--static-swift-stdlib`).
    private static let elsewhere = [
        "libc.so", "libm.so", "libgcc_s.so", "ld-linux", "libdl.so", "libpthread.so", "libutil.so", "librt.so",
        "libresolv.so", "libswift", "libFoundation", "lib_Foundation", "libdispatch", "libBlocksRuntime",
    ]

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/readelf"), "needs readelf of binutils"))
    func `the image has every library that an executable is linked against`() async throws {
        let installed = Set(
            words(after: "RUN apt-get").filter { $0.hasPrefix("lib") && !$0.hasSuffix("-dev") })
        for product in try Repository.products().sorted() {
            let process = try ChildProcess(executable: "/usr/bin/readelf", ["-d", ChildProcess.product(product)])
            #expect(await process.exit() == 0)
            for match in process.output.matches(of: #/\(NEEDED\).*\[(.+)\]/#) {
                let library = String(match.1)
                guard !Self.elsewhere.contains(where: library.hasPrefix) else { continue }
                let package = Self.packages[library]
                #expect(package.map(installed.contains) == true, "\(product) needs \(library)")
            }
        }
    }
}
