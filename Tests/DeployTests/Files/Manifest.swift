import Yams

/// A YAML node, read by dotted paths, with `<<` merged.
struct Manifest {
    let node: Node

    /// All documents of a file.
    static func all(_ path: String) throws -> [Manifest] {
        var documents = try Yams.compose_all(yaml: Repository.text(path)).makeIterator()
        var found: [Manifest] = []
        while let node = documents.next() { found.append(Manifest(node: node)) }
        if let error = documents.error { throw error }
        return found
    }

    static func one(_ path: String) throws -> Manifest {
        let documents = try all(path)
        guard documents.count == 1 else { throw UnexpectedDocumentCount(path: path, count: documents.count) }
        return documents[0]
    }

    struct UnexpectedDocumentCount: Error {
        let path: String
        let count: Int
    }

    /// The members of a mapping; merged ones follow its own.
    var members: [(name: String, value: Manifest)] {
        guard case .mapping(let mapping) = node else { return [] }
        var own: [(name: String, value: Manifest)] = []
        var merged: [(name: String, value: Manifest)] = []
        for (key, value) in mapping {
            let name = key.scalar?.string ?? ""
            if name == "<<" {
                merged += Manifest(node: value).members
            } else {
                own.append((name, Manifest(node: value)))
            }
        }
        let names = Set(own.map(\.name))
        return own + merged.filter { !names.contains($0.name) }
    }

    var names: Set<String> { Set(members.map(\.name)) }

    /// The node at a path of members and indices: `spec.template.spec.containers.0.image`.
    subscript(path: String) -> Manifest? {
        var current = self
        for step in path.split(separator: ".") {
            let next =
                Int(step).map { $0 < current.items.count ? current.items[$0] : nil }
                ?? current.members.first { $0.name == step }?.value
            guard let next else { return nil }
            current = next
        }
        return current
    }

    var items: [Manifest] {
        guard case .sequence(let sequence) = node else { return [] }
        return sequence.map(Manifest.init(node:))
    }

    /// The scalar as written.
    var text: String? { node.scalar?.string }

    /// Whether YAML reads the scalar as a string. Kubernetes accepts only strings as environment values.
    var isString: Bool { Resolver.default.resolveTag(of: node) == .str }
}
