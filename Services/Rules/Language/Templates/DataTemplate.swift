package import PushProtocol

/// JSON with variables.
///
/// A string that is exactly one variable renders as the variable's value, with its JSON type. Any other string with
/// variables renders as a string.
package indirect enum DataTemplate: Hashable, Sendable {
    case constant(JSONValue)
    /// `"{{filter(path)}}"`: the value itself.
    case value(path: String, filters: [Filter])
    case text(Template)
    case array([DataTemplate])
    /// Members in file order, so that the first error in the file is the one reported.
    case object([Member])

    package struct Member: Hashable, Sendable {
        var name: String
        var value: DataTemplate
    }

    /// Parses a string of a rule file.
    init(string: String, in language: Language? = nil) throws(TemplateError) {
        let template = try Template(string, in: language)
        guard let tag = template.tags.first else {
            self = .constant(.string(string))
            return
        }
        self = tag.isWhole && tag.path != "." ? .value(path: tag.path, filters: tag.filters) : .text(template)
    }

    /// Renders the JSON for one event. Returns `nil` for an absent optional value; its member or element is left out.
    func render(_ scope: Scope, place: String) throws(PlacedProblem) -> JSONValue? {
        switch self {
        case .constant(let value): return value
        case .value(let path, let filters):
            do { return try DataTemplate.value(at: path, filters, scope) } catch { throw PlacedProblem(place, error) }
        case .text(let template):
            return .string(try template.render(scope, place: place))
        case .array(let elements):
            var values: [JSONValue] = []
            for (index, element) in elements.enumerated() {
                if let value = try element.render(scope, place: "\(place).\(index)") { values.append(value) }
            }
            return .array(values)
        case .object(let members):
            var values: [String: JSONValue] = [:]
            for member in members {
                values[member.name] = try member.value.render(scope, place: "\(place).\(member.name)")
            }
            return .object(values)
        }
    }

    private static func value(
        at path: String, _ filters: [Filter], _ scope: Scope
    ) throws(RenderError.Problem) -> JSONValue? {
        guard var value = scope[path] else {
            if filters.contains(.optional) { return nil }
            throw .missing(path: path)
        }
        for filter in filters.reversed() where value != .null {
            guard let result = filter.apply(value, scope.localization) else {
                throw .unsuitable(path: path, expected: filter.input)
            }
            value = result
        }
        if value == .null, filters.contains(.optional) { return Optional.none }
        return value
    }

    var tags: [TemplateTag] {
        switch self {
        case .constant: []
        case .value(let path, let filters):
            [TemplateTag(kind: .variable, path: path, filters: filters, depth: 0, isWhole: true)]
        case .text(let template): template.tags
        case .array(let elements): elements.flatMap(\.tags)
        case .object(let members): members.flatMap(\.value.tags)
        }
    }
}

package struct PlacedProblem: Error {
    package var place: String
    package var problem: RenderError.Problem

    init(_ place: String, _ problem: RenderError.Problem) {
        self.place = place
        self.problem = problem
    }
}
