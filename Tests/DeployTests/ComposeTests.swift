import Foundation
import PushProtocol
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
                // The console creates it.
                if name == "CONSOLE_AUDIT_FILE" { continue }
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
            #expect(service["privileged"] == nil, "\(name)")
            // Reads key files of another user, and gives their copies to the services' user.
            let readsKeys = name == "app-folder"
            #expect(service["user"]?.text == (readsKeys ? "0:0" : nil), "\(name)")
            let added = readsKeys ? ["CHOWN", "DAC_OVERRIDE", "FOWNER"] : nil
            #expect(service["cap_add"]?.items.compactMap(\.text) == added, "\(name)")
            if let product = service["build.args.SERVICE"]?.text {
                #expect(product == name)
                #expect(service["image"]?.text == "heliograph/\(product):dev")
                #expect(service["read_only"]?.text == "true", "\(name)")
            }
        }
    }

    @Test func `a service has the memory limit of its manifest for Kubernetes`() throws {
        let workloads = try Workload.all().filter(\.isService)
        for name in try Repository.services() {
            let workload = try #require(workloads.first { $0.name == name }, "\(name)")
            let limit = try #require(workload.containers.first?["resources.limits.memory"]?.text)
            #expect(try service(name)["mem_limit"]?.text == limit.replacing("Mi", with: "m"), "\(name)")
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
        #expect(found == 12)
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
                // Phones reach the proxy from outside.
                #expect(name == "tls" || parts.count == 3 && parts[0] == "127.0.0.1", "\(name): \(port)")
                #expect(listening.contains(parts.last ?? ""), "\(name): \(port)")
            }
        }
        #expect(try service("provider-simulator")["ports.0"]?.text == "127.0.0.1:9480:9480")
    }

    @Test func `every volume is declared, and every mounted file exists`() throws {
        let declared = try #require(file["volumes"]).names
        for (name, service) in services {
            for volume in service["volumes"]?.items.compactMap(\.text) ?? [] {
                let source =
                    volume.firstMatch(of: /^\$\{[A-Z_]+:-([^}]+)\}:/).map { String($0.1) }
                    ?? String(volume.prefix { $0 != ":" })
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

    @Test(arguments: ["sandbox", "real"])
    func `an override for real providers replaces every address of the simulator`(providers: String) throws {
        let override = try Manifest.one("deploy/compose/\(providers).yaml")
        #expect(override["services.credentials.environment.PROVIDERS"]?.text == providers)
        #expect(override["services.demo.environment.PROVIDERS"]?.text == providers)
        for (name, changed) in override["services"]?.members ?? [] {
            _ = try service(name)
            for (variable, value) in changed["environment"]?.members ?? [] where variable.hasSuffix("_URL") {
                #expect(value.text?.hasPrefix("https://") == true, "\(name): \(variable)")
                #expect(providers == "real" || value.text != "https://api.push.apple.com", "\(variable)")
            }
        }
        for sender in ["apns-sender", "fcm-sender"] {
            let simulated = (try service(sender)["environment"]?.members ?? [])
                .filter { $0.value.text?.contains("simulator") == true }
            for (variable, _) in simulated {
                let value = override["services.\(sender).environment.\(variable)"]?.text
                #expect(value != nil && value?.contains("simulator") == false, "\(sender): \(variable)")
            }
        }
        let validates = override["services.fcm-sender.environment.FCM_VALIDATE_ONLY"]?.text
        #expect(validates == (providers == "sandbox" ? "yes" : nil))
    }

    @Test func `the proxy has every device path, no operator path, and sends streams at once`() throws {
        let text = try Repository.text("deploy/compose/Caddyfile")
        #expect(text.contains("flush_interval -1"))
        // Of events-api, only the operation for users.
        #expect(text.contains("handle /v1/test-pushes {"))
        #expect(!text.contains("/v1/events") && !text.contains("/v1/notifications"))
        for (service, folder) in DevicePaths.folders {
            let matcher = service == "rules" ? "rules" : "registry"
            let line = try #require(text.split(separator: "\n").first { $0.contains("@\(matcher) path ") })
            let patterns = line.split(separator: " ").filter { $0.hasPrefix("/") }
            for path in try DevicePaths.described(folder) {
                let isCarried = patterns.contains { pattern in
                    pattern.hasSuffix("/*") ? path.hasPrefix(pattern.dropLast()) : path == pattern
                }
                #expect(isCarried != path.hasPrefix("/v1/operator"), "\(service): \(path)")
            }
        }
    }

    @Test func `the folder of an app joins the demonstration's apps, and generated keys do not reach real providers`()
        async throws
    {
        let place = try TemporaryFolder()
        func run(_ executable: String, _ arguments: String..., providers: String = "simulator") async throws -> Int32? {
            let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
            let process = try ChildProcess(
                executable: executable, arguments,
                environment: ["PATH": path, "PUSHCTL": ChildProcess.product("pushctl"), "PROVIDERS": providers])
            return await process.exit()
        }
        let scripts = "\(Repository.root)/deploy/compose"
        let (source, target) = ("\(place.path)/my-app", "\(place.path)/volume")
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        let made = try await run(
            ChildProcess.product("pushctl"), "app", "new", "my-app", "--folder", source, "--simulated")
        #expect(made == 0)
        // Twice, as after a second `docker compose up`.
        for _ in 1...2 {
            #expect(try await run("\(scripts)/app-folder", source, target) == 0)
            #expect(try await run("\(scripts)/credentials", target) == 0)
        }
        let catalog = try AppCatalog.load(path: "\(target)/apps.yaml")
        #expect(catalog.ids.contains { $0.rawValue == "my-app" } && catalog.ids.contains { $0.rawValue == "baolife" })
        for app in catalog.ids {
            #expect(FileManager.default.fileExists(atPath: "\(target)/rules/\(app).yaml"), "\(app)")
        }
        #expect(FileManager.default.fileExists(atPath: "\(target)/amqp-url-upstream-my-app"))
        #expect(try await run("\(scripts)/credentials", target, providers: "real") != 0)
        // A later start without the folder keeps the app.
        #expect(try await run("\(scripts)/app-folder", scripts, target) == 0)
        #expect(try await run("\(scripts)/credentials", target) == 0)
        #expect(try AppCatalog.load(path: "\(target)/apps.yaml").ids.contains { $0.rawValue == "my-app" })
    }
}
