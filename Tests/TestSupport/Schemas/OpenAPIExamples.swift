package import PushProtocol

/// The examples of an OpenAPI 3.1 document.
package enum OpenAPIExamples {
    /// The bodies without an example, the examples that their schemas refuse, and the examples with another status than
    /// their response.
    package static func problems(in document: JSONValue) -> [String] {
        var problems: [String] = []
        let validator = SchemaValidator(document)
        func check(_ body: JSONValue, _ place: String, status: Int64? = nil) {
            for (type, media) in body["content"]?.object ?? [:] {
                let examples =
                    [media["example"]].compactMap(\.self)
                    + (media["examples"]?.object ?? [:]).values.compactMap { $0["value"] }
                if examples.isEmpty { problems.append("\(place): \(type) has no example") }
                for example in examples {
                    if let schema = media["schema"] {
                        problems += validator.problems(of: example, by: schema).map { "\(place): \($0)" }
                    }
                    if let status, let written = example["status"]?.int, status != written {
                        problems.append("\(place): the example says \(written)")
                    }
                }
            }
        }
        for (path, operations) in document["paths"]?.object ?? [:] {
            for (method, operation) in operations.object ?? [:] where method != "parameters" {
                let place = "\(method.uppercased()) \(path)"
                if let body = operation["requestBody"] { check(resolved(body, document), "\(place), request") }
                for (status, response) in operation["responses"]?.object ?? [:] {
                    check(resolved(response, document), "\(place), \(status)", status: Int64(status))
                }
            }
        }
        return problems.sorted()
    }

    private static func resolved(_ value: JSONValue, _ document: JSONValue) -> JSONValue {
        guard let reference = value["$ref"]?.string else { return value }
        return reference.split(separator: "/").dropFirst().reduce(Optional(document)) { $0?[String($1)] } ?? .null
    }
}
