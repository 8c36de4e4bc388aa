import Foundation
import Testing
import TestSupport

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

    @Test func `it runs as an unprivileged user, with the binary's own health check`() throws {
        let final = try #require(text.range(of: "AS service")).upperBound
        let lines = text[final...].split(separator: "\n")
        #expect(lines.contains("USER 65532:65532"))
        #expect(lines.contains { $0.hasSuffix(#"CMD ["/usr/local/bin/service", "healthcheck"]"#) })
        #expect(lines.last == #"ENTRYPOINT ["/usr/local/bin/service"]"#)
        #expect(lines.contains("EXPOSE 9400"))
    }

    /// The Debian packages of all stages, with the version after `=`.
    private func packages() throws -> [(name: String, version: String?)] {
        let installed = text.matches(of: #/--no-install-recommends([^&]+)&&/#)
            .flatMap { $0.1.split(whereSeparator: \.isWhitespace).map(String.init) }
        return installed.map { word in
            let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
            return (parts[0], parts.count == 2 ? parts[1] : nil)
        }
    }

    @Test func `every Debian package has an exact version, the same for headers and library`() throws {
        let packages = try packages()
        #expect(packages.count >= 20)
        var versions: [String: String] = [:]
        for (name, version) in packages {
            let version = try #require(version, "\(name) has no version")
            #expect(version.contains(#/^[0-9][A-Za-z0-9.+~:-]*$/#), "\(name)=\(version)")
            #expect(versions.updateValue(version, forKey: name) ?? version == version, "\(name) has two versions")
        }
        for (headers, library) in [
            ("libcurl4-openssl-dev", "libcurl4"), ("libjemalloc-dev", "libjemalloc2"),
            ("libnghttp2-dev", "libnghttp2-14"), ("libpq-dev", "libpq5"), ("librabbitmq-dev", "librabbitmq4"),
            ("libssl-dev", "libssl3"), ("curl", "libcurl4"), ("openssl", "libssl3"),
        ] {
            #expect(versions[headers] != nil && versions[headers] == versions[library], "\(headers), \(library)")
        }
    }

    /// If this fails after an upstream update, compare the changelog, then change the pattern.
    @Test func `librabbitmq is the version with Debian's fixes`() throws {
        let version = try #require(try packages().first { $0.name == "librabbitmq4" }?.version)
        let update = try #require(version.firstMatch(of: #/^0\.11\.0-1\+deb12u([0-9]+)$/#)?.1)
        #expect(try #require(Int(update)) >= 3)
    }

    @Test func `the pushctl image has both executables and no health check`() throws {
        let stage = try #require(text.firstMatch(of: #/AS pushctl\n([\s\S]*?)\nFROM /#)?.1)
        #expect(stage.contains("COPY --from=build /out/pushctl /out/rules /usr/local/bin/"))
        #expect(stage.contains("\nHEALTHCHECK NONE\n"))
        #expect(stage.contains(#"ENTRYPOINT ["/usr/local/bin/pushctl"]"#))
        #expect(text.contains("FROM pushctl AS tools"))
        let readme = try Repository.text("deploy/kubernetes/README.md")
        #expect(
            readme.contains(
                "for target in pushctl tools; do\n      docker build -f deploy/Dockerfile --target $target "))
    }

    @Test func `each service image has the executable under its own name and as a link named service`() {
        #expect(text.contains("COPY --from=build /out/${SERVICE} /usr/local/bin/\n"))
        #expect(text.contains(#"RUN ln -s "${SERVICE}" /usr/local/bin/service "#))
    }

    @Test func `every copied folder exists and is in the build context`() throws {
        let ignored = try Repository.text(".dockerignore").split(separator: "\n").map(String.init)
        for line in text.split(separator: "\n") where line.hasPrefix("COPY ") && !line.contains("--from") {
            let source = String(line.split(separator: " ")[1])
            guard source != "Package.*" else { continue }
            #expect(FileManager.default.fileExists(atPath: "\(Repository.root)/\(source)"), "\(line)")
            #expect(ignored.contains("!\(source)"), "\(line)")
        }
    }

    /// Debian packages of the libraries that our executables may link.
    private static let packages = [
        "librabbitmq.so.4": "librabbitmq4", "libpq.so.5": "libpq5", "libcurl.so.4": "libcurl4",
        "libnghttp2.so.14": "libnghttp2-14", "libssl.so.3": "libssl3", "libcrypto.so.3": "libssl3",
        "libstdc++.so.6": "libstdc++6", "libjemalloc.so.2": "libjemalloc2",
    ]
    /// In every base image, or linked statically (`--static-swift-stdlib`).
    private static let elsewhere = [
        "libc.so", "libm.so", "libgcc_s.so", "ld-linux", "libdl.so", "libpthread.so", "libutil.so", "librt.so",
        "libresolv.so", "libswift", "libFoundation", "lib_Foundation", "libdispatch", "libBlocksRuntime",
    ]

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/readelf"), "needs readelf of binutils"))
    func `the image has every library that an executable links`() async throws {
        let installed = Set(
            try packages().map(\.name).filter { $0.hasPrefix("lib") && !$0.hasSuffix("-dev") })
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
