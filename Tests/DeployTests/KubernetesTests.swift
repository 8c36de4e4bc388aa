import Foundation
import ServiceKit
import Testing

@Suite struct KubernetesTests {
    @Test func `every file parses and is listed in a kustomization`() throws {
        for folder in ["base", "demo"] {
            let path = "deploy/kubernetes/\(folder)"
            let resources = try #require(try Manifest.one("\(path)/kustomization.yaml")["resources"])
            let listed = Set(resources.items.compactMap(\.text))
            let files = Set(
                Repository.files(below: path, suffix: ".yaml").map { String($0.dropFirst(path.count + 1)) }
                    .filter { !$0.hasPrefix("secrets/") })
            #expect(listed.filter { $0.hasSuffix(".yaml") } == files.subtracting(["kustomization.yaml"]))
        }
        let components = Set(
            Repository.files(below: "deploy/kubernetes/components", suffix: ".yaml")
                .map { $0.split(separator: "/").dropLast().joined(separator: "/") })
        for component in components {
            let resources = try Manifest.one("\(component)/kustomization.yaml")["resources"]
            let listed = resources?.items.compactMap(\.text) ?? []
            let files = Repository.files(below: component, suffix: ".yaml")
                .map { String($0.dropFirst(component.count + 1)) }
            #expect(Set(listed + ["kustomization.yaml"]) == Set(files), "\(component)")
        }
        for object in try Manifests.all() {
            #expect(object.manifest["apiVersion"] != nil, "\(object.file)")
            let isNamed = !["Kustomization", "Component"].contains(object.kind)
            #expect(!isNamed || object.manifest["metadata.name"] != nil, "\(object.file)")
        }
    }

    @Test func `every image of ours gets its version from a kustomization`() throws {
        let versioned = try ["base", "demo", "components/console", "components/pgbouncer"].flatMap {
            try Manifest.one("deploy/kubernetes/\($0)/kustomization.yaml")["images"]?.items ?? []
        }
        #expect(versioned.allSatisfy { $0["newTag"]?.text == Build.version })
        let names = Set(versioned.compactMap { $0["name"]?.text })
        let images = try Workload.all().flatMap(\.containers).compactMap { $0["image"]?.text }
        #expect(Set(images.filter { $0.hasPrefix("heliograph/") }) == names)
        for image in images where !image.hasPrefix("heliograph/") {
            #expect(image.contains(":") && !image.hasSuffix(":latest"), "\(image)")
        }
    }

    @Test func `probes use the served paths and port`() throws {
        let port = try Settings.load(keys: [], environment: [:]).integer(.adminPort)
        for workload in try Workload.all() where workload.isService {
            let container = workload.containers[0]
            let admin = container["ports"]?.items.first { $0["name"]?.text == "admin" }
            #expect(admin?["containerPort"]?.text == "\(port)", "\(workload)")
            for (probe, path) in [
                ("startupProbe", "/health/live"), ("livenessProbe", "/health/live"),
                ("readinessProbe", "/health/ready"),
            ] {
                #expect(container["\(probe).httpGet.path"]?.text == path, "\(workload)")
                #expect(container["\(probe).httpGet.port"]?.text == "admin", "\(workload)")
            }
        }
    }

    @Test func `every pod and container drops unneeded privileges`() throws {
        for workload in try Workload.all() {
            let pod = try #require(workload.pod, "\(workload)")
            #expect(pod["automountServiceAccountToken"]?.text == "false", "\(workload)")
            #expect(pod["enableServiceLinks"]?.text == "false", "\(workload)")
            #expect(pod["securityContext.runAsNonRoot"]?.text == "true", "\(workload)")
            #expect(pod["securityContext.seccompProfile.type"]?.text == "RuntimeDefault", "\(workload)")
            for container in workload.containers {
                #expect(container["securityContext.allowPrivilegeEscalation"]?.text == "false", "\(workload)")
                #expect(container["securityContext.capabilities.drop.0"]?.text == "ALL", "\(workload)")
                #expect(container["resources.limits.memory"] != nil, "\(workload)")
                #expect(container["resources.limits.cpu"] == nil, "\(workload)")
                if workload.isService {
                    #expect(container["securityContext.readOnlyRootFilesystem"]?.text == "true", "\(workload)")
                    #expect(pod["securityContext.runAsUser"]?.text == "65532", "\(workload)")
                }
            }
        }
    }

    @Test func `the termination grace period is longer than a drain`() throws {
        let deadline = try Settings.load(keys: [], environment: [:]).duration(.shutdownDeadline) + .seconds(5)
        for workload in try Workload.all() where workload.isService {
            let grace = try #require(Int(workload.pod?["terminationGracePeriodSeconds"]?.text ?? ""), "\(workload)")
            let pause = Int(workload.containers[0]["lifecycle.preStop.sleep.seconds"]?.text ?? "0") ?? 0
            #expect(.seconds(grace - pause) > deadline, "\(workload)")
        }
    }

    @Test func `each stage has two replicas and a disruption budget`() throws {
        let budgets = try Manifests.all("PodDisruptionBudget")
        for workload in try Workload.all() where workload.isService && workload.name != "provider-simulator" {
            // The audit log of the console is a file.
            let replicas = workload.name == "console" ? "1" : "2"
            #expect(workload.manifest["spec.replicas"]?.text == replicas, "\(workload)")
            let budget = budgets.first { $0["metadata.name"]?.text == workload.name }
            #expect(budget?["spec.maxUnavailable"]?.text == "1", "\(workload)")
        }
    }

    @Test func `labels select existing pods`() throws {
        let name = "app.kubernetes.io/name"
        func label(_ manifest: Manifest?) -> String? { manifest?.members.first { $0.name == name }?.value.text }
        let pods = Set(
            try Workload.all().compactMap { label($0.manifest["spec.template.metadata.labels"]) }
                + Manifests.all("Pod").compactMap { label($0["metadata.labels"]) })
        for workload in try Workload.all() where workload.kind != "Job" {
            #expect(label(workload.manifest["spec.selector.matchLabels"]) == workload.name, "\(workload)")
            #expect(label(workload.manifest["spec.template.metadata.labels"]) == workload.name, "\(workload)")
        }
        for service in try Manifests.all("Service") {
            #expect(pods.contains(label(service["spec.selector"]) ?? ""))
        }
        for policy in try Manifests.all("NetworkPolicy") {
            for expression in policy["spec.podSelector.matchExpressions"]?.items ?? [] {
                for value in expression["values"]?.items ?? [] {
                    #expect(pods.contains(value.text ?? ""), "\(policy["metadata.name"]?.text ?? "")")
                }
            }
        }
    }

    @Test func `a Service points to a configured port of its container`() throws {
        let workloads = try Workload.all()
        for service in try Manifests.all("Service") {
            let name = try #require(service["metadata.name"]?.text)
            let container = try #require(workloads.first { $0.name == name }?.containers.first, "\(name)")
            let listening = Set((container["env"]?.items ?? []).compactMap { $0["value"]?.text })
            for port in service["spec.ports"]?.items ?? [] {
                let target = container["ports"]?.items.first { $0["name"]?.text == port["targetPort"]?.text }
                let number = try #require(target?["containerPort"]?.text, "\(name)")
                #expect(number == port["port"]?.text, "\(name)")
                if ["rules", "token-registry", "events-api", "provider-simulator"].contains(name) {
                    #expect(listening.contains(number), "\(name): \(number)")
                }
            }
        }
    }

    @Test func `environment values are strings`() throws {
        for workload in try Workload.all() {
            for entry in workload.containers.flatMap({ $0["env"]?.items ?? [] }) {
                guard let value = entry["value"] else { continue }
                #expect(value.isString, "\(workload): \(entry["name"]?.text ?? "")")
            }
        }
    }
}
