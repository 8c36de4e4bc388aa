import Foundation
import ServiceKit
import Testing
import TestSupport

@Suite struct ComposeTests {
    private let services: [(name: String, value: Manifest)]
    private let file: Manifest

    init() throws {
        file = try Manifest.one("docker-compose.yml")
        services = file["services"]?.members ?? []
    }

    private func service(_ name: String) throws -> Manifest {
        try #require(services.first { $0.name == name }?.value, "no service \(name)")
    }

    @Test func `every file path in a container's environment exists`() async throws {
        let credentials = try await Credentials.make()
        for container in try Container.compose() {
            for (name, value) in container.environment where value.hasPrefix("/") {
                let path = credentials.translate(value)
                #expect(FileManager.default.fileExists(atPath: path), "\(container): \(name)=\(value)")
            }
        }
        for file in ["database-administrator", "rabbitmq-definitions.json"] {
            #expect(FileManager.default.fileExists(atPath: "\(credentials.folder.path)/\(file)"))
        }
    }

    @Test func `every service that another one waits for can reach the awaited condition`() throws {
        for (name, service) in services {
            for (other, dependency) in service["depends_on"]?.members ?? [] {
                let target = try self.service(other)
                switch dependency["condition"]?.text {
                case "service_healthy":
                    // Our images have a health check.
                    #expect(target["healthcheck"] != nil || target["build.args.SERVICE"] != nil, "\(name) → \(other)")
                case "service_completed_successfully":
                    #expect(target["restart"]?.text == "on-failure", "\(name) → \(other)")
                default: Issue.record("\(name) → \(other) has no condition")
                }
            }
        }
    }

    @Test func `the stop timeout is longer than a drain`() throws {
        let deadline = try Settings.load(keys: [], environment: [:]).duration(.shutdownDeadline) + .seconds(5)
        for name in try Repository.services() {
            let text = try #require(try service(name)["stop_grace_period"]?.text)
            let seconds = try #require(Int(text.dropLast()))
            #expect(text.hasSuffix("s") && .seconds(seconds) > deadline, "\(name)")
        }
    }

    @Test func `our containers drop all privileges, and images are named after their executable`() throws {
        for (name, service) in services where service["build"] != nil {
            #expect(service["cap_drop"]?.items.map(\.text) == ["ALL"], "\(name)")
            #expect(service["security_opt.0"]?.text == "no-new-privileges:true", "\(name)")
            #expect(service["privileged"] == nil && service["user"] == nil, "\(name)")
            if let product = service["build.args.SERVICE"]?.text {
                #expect(product == name)
                #expect(service["image"]?.text == "heliograph/\(product):dev")
                #expect(service["read_only"]?.text == "true", "\(name)")
            }
        }
    }

    /// A root check before the server writes its Erlang cookie would create the file as root.
    @Test func `the broker's health check runs as the broker's user, after the cookie exists`() throws {
        let check = try #require(try service("rabbitmq")["healthcheck"])
        #expect(
            check["test"]?.items.compactMap(\.text).prefix(4) == ["CMD", "gosu", "rabbitmq", "rabbitmq-diagnostics"])
        let interval = try #require(Int(check["start_interval"]?.text?.dropLast() ?? ""))
        #expect(check["start_interval"]?.text == "\(interval)s" && interval >= 15)
    }

    @Test func `every container that uses broker or database allows plaintext explicitly`() throws {
        var found = 0
        for (name, service) in services {
            let environment = service["environment"]?.members ?? []
            guard environment.contains(where: { ["AMQP_URL_FILE", "DATABASE_URL_FILE"].contains($0.name) }) else {
                continue
            }
            found += 1
            let permission = environment.first { $0.name == "HELIOGRAPH_ALLOW_PLAINTEXT" }?.value
            #expect(permission?.text == "yes" && permission?.isString == true, "\(name)")
        }
        #expect(found == 8)
    }

    @Test func `every image has a version`() throws {
        for (name, service) in services {
            let image = try #require(service["image"]?.text, "\(name)")
            let tag = image.split(separator: ":").dropFirst().first
            #expect(tag != nil && tag != "latest", "\(name): \(image)")
        }
    }

    @Test func `published ports match the configured ports and bind to loopback only`() throws {
        for (name, service) in services {
            let listening = (service["environment"]?.members ?? []).filter { $0.name.hasSuffix("_PORT") }
                .compactMap(\.value.text)
            for port in service["ports"]?.items.compactMap(\.text) ?? [] {
                let parts = port.split(separator: ":").map(String.init)
                #expect(parts.count == 3 && parts[0] == "127.0.0.1", "\(name): \(port)")
                #expect(listening.contains(parts[2]), "\(name): \(port)")
            }
        }
        #expect(try service("provider-simulator")["ports.0"]?.text == "127.0.0.1:9480:9480")
    }

    @Test func `every volume is declared, and every mounted file exists`() throws {
        let declared = try #require(file["volumes"]).names
        for (name, service) in services {
            for volume in service["volumes"]?.items.compactMap(\.text) ?? [] {
                let source = String(volume.prefix { $0 != ":" })
                let isThere =
                    source.hasPrefix(".")
                    ? FileManager.default.fileExists(atPath: "\(Repository.root)/\(source)")
                    : declared.contains(source)
                #expect(isThere, "\(name): \(volume)")
            }
        }
    }

    @Test func `the senders use the simulator's host name and ports`() throws {
        for sender in ["apns-sender", "fcm-sender"] {
            for (name, value) in try service(sender)["environment"]?.members ?? [] where name.hasSuffix("_URL") {
                let url = try #require(URL(string: value.text ?? ""))
                #expect(url.host() == "provider-simulator" && url.scheme == "https", "\(sender): \(name)")
                let ports = try service("provider-simulator")["environment"]?.members.compactMap(\.value.text) ?? []
                #expect(ports.contains("\(url.port ?? 443)"), "\(sender): \(name)")
            }
        }
    }
}
