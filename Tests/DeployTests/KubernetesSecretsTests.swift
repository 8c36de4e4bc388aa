import Foundation
import Testing
import TestSupport

/// Every file path in an environment is mounted, and every mount has a source.
@Suite(.timeLimit(.minutes(1))) struct KubernetesSecretsTests {
    /// The files of each generated ConfigMap and Secret: key and source.
    private func generated() throws -> [String: [String: String]] {
        let file = try Manifest.one("deploy/kubernetes/demo/kustomization.yaml")
        var result: [String: [String: String]] = [:]
        for generator in (file["configMapGenerator"]?.items ?? []) + (file["secretGenerator"]?.items ?? []) {
            for source in generator["files"]?.items.compactMap(\.text) ?? [] {
                let parts = source.split(separator: "=").map(String.init)
                let key = parts.count == 2 ? parts[0] : String(source.split(separator: "/").last ?? "")
                result[generator["name"]?.text ?? "", default: [:]][key] = parts.last
            }
        }
        return result
    }

    @Test func `every file path in a container's environment is in a mounted secret`() throws {
        let generated = try generated()
        for workload in try Workload.all() {
            let volumes = workload.pod?["volumes"]?.items ?? []
            for container in try Container.kubernetes() where container.description.hasSuffix(": \(workload.name)") {
                for (name, value) in container.environment where value.hasPrefix("/") {
                    // Files in the image, and files that the process creates.
                    if value.hasPrefix("/usr/share/heliograph") || value.hasPrefix("/var/lib/heliograph") { continue }
                    // The demonstration has no console.
                    if workload.name == "console" { continue }
                    let mounts = workload.containers[0]["volumeMounts"]?.items ?? []
                    let mount = mounts.first { value.hasPrefix(($0["mountPath"]?.text ?? "-") + "/") }
                    let volume = volumes.first { $0["name"]?.text == mount?["name"]?.text }
                    let sources =
                        [volume?["secret.secretName"]?.text].compactMap { $0 }
                        + (volume?["projected.sources"]?.items ?? []).compactMap {
                            $0["configMap.name"]?.text ?? $0["secret.name"]?.text
                        }
                    let keys = Set(sources.flatMap { generated[$0, default: [:]].keys })
                    let file = value.split(separator: "/").last.map(String.init) ?? ""
                    #expect(keys.contains(file), "\(workload): \(name)=\(value)")
                }
            }
        }
    }

    @Test func `every secret comes from a file of the credentials script`() async throws {
        let credentials = try await Credentials.make()
        for (name, files) in try generated() {
            for source in files.values {
                let path = source.replacing("secrets/", with: credentials.folder.path + "/")
                #expect(FileManager.default.fileExists(atPath: path), "\(name): \(source)")
            }
        }
    }

    @Test func `each process gets only the credentials that it uses`() throws {
        let used = [
            "rules": ["bearer-keys"], "token-registry": ["bearer-keys"],
            "events-api": ["bearer-keys", "publisher-keys"], "apns-sender": ["apns-credentials"],
            "fcm-sender": ["fcm-credentials"], "webpush-sender": ["webpush-credentials"],
            "webhook-sender": ["webhook-secrets"],
            "provider-simulator": ["apns-credentials", "fcm-credentials", "webpush-credentials"],
        ]
        for workload in try Workload.all() {
            let volumes = workload.pod?["volumes"]?.items ?? []
            let sources = volumes.flatMap { $0["projected.sources"]?.items ?? [] }
            let secrets =
                volumes.compactMap { $0["secret.secretName"]?.text } + sources.compactMap { $0["secret.name"]?.text }
            let others = secrets.filter { $0 != workload.name }
            #expect(Set(others) == Set(used[workload.name, default: []]), "\(workload)")
        }
    }

    @Test func `each service has its own broker user`() throws {
        let generated = try generated()
        for service in [
            "rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback", "events-api",
            "webhook-sender", "topology",
        ] {
            #expect(generated[service]?["amqp-url"] == "secrets/amqp-url-\(service)")
        }
        for service in ["rules", "token-registry", "feedback", "events-api"] {
            #expect(generated[service]?["database-url"] == "secrets/database-url-\(service)")
        }
    }
}
