import ServiceKit
import Testing

/// The manifests during restarts, scaling and operation.
@Suite struct KubernetesOperationTests {
    private func kustomization(_ folder: String) throws -> Manifest {
        try Manifest.one("deploy/kubernetes/\(folder)/kustomization.yaml")
    }

    /// Otherwise the kubelet makes every file group-readable at each start, including the broker's Erlang cookie.
    @Test func `a persistent volume keeps the modes of its files`() throws {
        let stateful = try Workload.all().filter { $0.kind == "StatefulSet" }
        #expect(Set(stateful.map(\.name)) == ["rabbitmq", "postgres"])
        for workload in stateful {
            #expect(workload.pod?["securityContext.fsGroupChangePolicy"]?.text == "OnRootMismatch", "\(workload)")
        }
    }

    @Test func `base requires TLS, and the demonstration allows plaintext explicitly`() throws {
        #expect(
            !(try Repository.files(below: "deploy/kubernetes/base", suffix: ".yaml").contains {
                try Repository.text($0).contains("HELIOGRAPH_ALLOW_PLAINTEXT")
            }))
        var found = 0
        for container in try Container.kubernetes() where container.product != "provider-simulator" {
            let names = container.environment.keys
            guard names.contains("AMQP_URL_FILE") || names.contains("DATABASE_URL_FILE") else { continue }
            found += 1
            #expect(container.environment["HELIOGRAPH_ALLOW_PLAINTEXT"] == "yes", "\(container)")
        }
        #expect(found == 10)
    }

    @Test func `a pushctl pod drops privileges and ends after a time limit`() throws {
        let pod = try Manifest.one("deploy/kubernetes/pushctl.yaml")
        #expect(pod["kind"]?.text == "Pod")
        #expect(pod["spec.securityContext.runAsNonRoot"]?.text == "true")
        #expect(pod["spec.securityContext.seccompProfile.type"]?.text == "RuntimeDefault")
        #expect(pod["spec.automountServiceAccountToken"]?.text == "false")
        #expect(pod["spec.enableServiceLinks"]?.text == "false")
        #expect((pod["spec.activeDeadlineSeconds"]?.text).flatMap { Int($0) } ?? .max <= 86_400)
        let container = try #require(pod["spec.containers.0"])
        #expect(container["image"]?.text == "heliograph/pushctl:\(Build.version)")
        #expect(container["securityContext.allowPrivilegeEscalation"]?.text == "false")
        #expect(container["securityContext.readOnlyRootFilesystem"]?.text == "true")
        #expect(container["securityContext.capabilities.drop.0"]?.text == "ALL")
        #expect(container["resources.limits.memory"] != nil)
        let known = [ConfigurationKey].sharedNames
            .union(["REGISTRY_URL", "REGISTRY_OPERATOR_KEY_FILE", "REGISTRY_TOKEN_KEYS_FILE"])
        for entry in container["env"]?.items ?? [] { #expect(known.contains(entry["name"]?.text ?? "")) }
        // Not part of base: it runs only during an operation.
        #expect(
            try kustomization("base")["resources"]?.items.contains { $0.text?.contains("pushctl") == true } == false)
    }

    @Test func `each component changes only objects of base`() throws {
        let base = try Workload.all().filter { $0.file.hasPrefix("deploy/kubernetes/base/") }
        let wanted = [
            "authorities": Set(base.map(\.name)),
            "autoscaled": Set(base.filter { $0.kind == "Deployment" }.map(\.name)),
            "keda": Set(base.filter { $0.kind == "Deployment" }.map(\.name)).subtracting([
                "events-api", "webhook-sender",
            ]),
            "pgbouncer": ["rules", "token-registry", "feedback", "events-api"],
        ]
        for (component, expected) in wanted {
            let file = try kustomization("components/\(component)")
            #expect(file["kind"]?.text == "Component" && file["apiVersion"]?.text == "kustomize.config.k8s.io/v1alpha1")
            for patch in file["patches"]?.items ?? [] where patch["target.labelSelector"] != nil {
                let selector = try #require(patch["target.labelSelector"]?.text)
                let names = try #require(selector.firstMatch(of: #/^app\.kubernetes\.io\/name in \(([a-z,-]+)\)$/#)).1
                #expect(Set(names.split(separator: ",").map(String.init)) == expected, "\(component)")
                let kinds = Set((patch["target.kind"]?.text ?? "").split(separator: "|").map(String.init))
                let targets = base.filter { kinds.contains($0.kind) && expected.contains($0.name) }
                #expect(Set(targets.map(\.name)) == expected, "\(component)")
                let operations = try Manifest.parse(patch["patch"]?.text ?? "").items
                #expect(!operations.isEmpty)
                for operation in operations {
                    var path = (operation["path"]?.text ?? "").split(separator: "/").joined(separator: ".")
                    if path.hasSuffix(".-") { path.removeLast(2) }
                    for target in targets { #expect(target.manifest[path] != nil, "\(component): \(target) \(path)") }
                }
            }
            #expect(try Repository.text("deploy/kubernetes/README.md").contains("components/\(component)"))
        }
    }

    @Test func `the README names every secret and config map of base and of the pushctl pod`() throws {
        let page = try Repository.text("deploy/kubernetes/README.md")
        let volumes =
            try Workload.all().filter { $0.file.hasPrefix("deploy/kubernetes/base/") }
            .flatMap { $0.pod?["volumes"]?.items ?? [] }
            + (Manifest.one("deploy/kubernetes/pushctl.yaml")["spec.volumes"]?.items ?? [])
        let sources = volumes.flatMap { $0["projected.sources"]?.items ?? [] }
        let names =
            volumes.compactMap { $0["secret.secretName"]?.text }
            + sources.compactMap { $0["secret.name"]?.text ?? $0["configMap.name"]?.text }
        #expect(names.count >= 12)
        for name in Set(names) { #expect(page.contains("`\(name)`"), "\(name)") }
    }

    @Test func `the Ingress has every device path, no operator path, and keeps streams for an hour`() throws {
        let manifest = try Manifest.one("deploy/kubernetes/components/ingress/ingress.yaml")
        let annotations = manifest["metadata.annotations"]?.members ?? []
        for name in ["proxy-read-timeout", "proxy-send-timeout"] {
            let value = annotations.first { $0.name == "nginx.ingress.kubernetes.io/\(name)" }?.value
            #expect((value?.text.flatMap(Int.init) ?? 0) >= 3600 && value?.isString == true, "\(name)")
        }
        #expect(annotations.contains { $0.name.hasSuffix("/proxy-buffering") && $0.value.text == "off" })
        #expect(manifest["spec.tls.0.hosts.0"]?.text == manifest["spec.rules.0.host"]?.text)
        #expect(try Repository.text("deploy/kubernetes/README.md").contains("components/ingress"))
        var carried: [String: [String]] = [:]
        for path in manifest["spec.rules.0.http.paths"]?.items ?? [] {
            let service = path["backend.service.name"]?.text ?? ""
            carried[service, default: []].append(try #require(path["path"]?.text))
        }
        #expect(carried["events-api"] == ["/v1/test-pushes"])
        for (service, folder) in DevicePaths.folders {
            let prefixes = carried[service, default: []]
            let ours = try DevicePaths.described(folder)
            for path in ours {
                let isCarried = prefixes.contains { path == $0 || path.hasPrefix("\($0)/") }
                #expect(isCarried != path.hasPrefix("/v1/operator"), "\(service): \(path)")
            }
            for prefix in prefixes {
                #expect(ours.contains { $0 == prefix || $0.hasPrefix("\(prefix)/") }, "\(prefix)")
            }
        }
    }
}
