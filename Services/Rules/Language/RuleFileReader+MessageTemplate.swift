import PushProtocol
import Yams

extension RuleFileReader {
    private static let textKeys = ["title", "subtitle", "body", "deep-link", "image", "data", "preview"]

    /// Reads `say` in all of its languages.
    ///
    /// - Parameter isWhole: whether it belongs to a rule. A digest's `say` has no `payload` and no `live-activity`.
    func messageTemplate(_ field: Field, _ shapes: [EventShape], isWhole: Bool = false) -> Rule.MessageTemplate? {
        let own = isWhole ? ["payload", "live-activity"] : []
        guard let table = table(field, keys: RuleFileReader.textKeys + ["languages"] + own) else { return nil }
        var messageTemplate = words(table, shapes)
        messageTemplate.payload = table["payload"].flatMap { payload($0, shapes) }
        messageTemplate.activity = table["live-activity"].flatMap { activity($0, shapes) }
        for (name, value) in table["languages"].flatMap(members) ?? [] {
            guard let language = Language(name) else {
                report(value, "“\(name)” is not a language tag of BCP 47, such as de or pt-BR")
                continue
            }
            guard let table = self.table(value, keys: RuleFileReader.textKeys) else { continue }
            let own = self.language
            self.language = language
            messageTemplate.translations[language] = words(table, shapes)
            self.language = own
        }
        return messageTemplate
    }

    private func words(_ table: [String: Field], _ shapes: [EventShape]) -> Rule.MessageTemplate {
        func template(_ key: String, limit: Int = .max) -> Template? {
            table[key].flatMap { self.template($0, shapes, limit: limit) }
        }
        return Rule.MessageTemplate(
            title: template("title", limit: Rule.maximumTitle),
            subtitle: template("subtitle", limit: Rule.maximumTitle),
            body: template("body", limit: Rule.maximumBody), deepLink: template("deep-link"),
            image: template("image"), data: table["data"].flatMap { data($0, shapes) },
            preview: table["preview"].flatMap { preview($0) })
    }

    /// Reads `preview`: fixed texts without data of the event.
    private func preview(_ field: Field) -> Rule.MessageTemplate.Preview? {
        table(field, keys: ["title", "body"]).map { table in
            func fixed(_ key: String, limit: Int) -> Template? {
                guard let field = table[key], let template = template(field, [], limit: limit) else { return nil }
                if !template.tags.isEmpty {
                    report(field, "a preview takes no variables, because strangers may read it")
                }
                return template
            }
            return Rule.MessageTemplate.Preview(
                title: fixed("title", limit: Rule.maximumTitle), body: fixed("body", limit: Rule.maximumBody))
        }
    }

    /// Reads a text with variables.
    func template(_ field: Field, _ shapes: [EventShape], limit: Int = .max) -> Template? {
        guard !field.node.isBareTemplate else {
            report(field, RuleFileReader.unquoted)
            return nil
        }
        guard let text = text(field) else { return nil }
        do {
            let template = try Template(text, in: language)
            if template.tags.isEmpty, text.count > limit {
                report(field, "the text has \(text.count) characters; at most \(limit) are shown")
            }
            check(template.tags, shapes, field)
            return template
        } catch {
            report(field, error.problem)
            return nil
        }
    }

    /// Reads the members of `data`.
    private func data(_ field: Field, _ shapes: [EventShape]) -> [DataTemplate.Member]? {
        members(field)?.compactMap { name, value in
            dataTemplate(value, shapes).map { DataTemplate.Member(name: name, value: $0) }
        }
    }

    /// Reads JSON with variables.
    func dataTemplate(_ field: Field, _ shapes: [EventShape]) -> DataTemplate? {
        switch field.node {
        case .sequence: return list(field).map { .array($0.compactMap { dataTemplate($0, shapes) }) }
        case .mapping: return data(field, shapes).map(DataTemplate.object)
        case .scalar, .alias:
            guard let value = scalar(field) else { return nil }
            guard case .string(let text) = value else { return .constant(value) }
            do {
                let template = try DataTemplate(string: text, in: language)
                check(template.tags, shapes, field)
                return template
            } catch {
                report(field, error.problem)
                return nil
            }
        }
    }

    /// Reports variables that no example of the event has.
    ///
    /// Inside a section, a name can be a member of the section's object. There, only paths that start with a top-level
    /// member of an example are checked.
    private func check(_ tags: [TemplateTag], _ shapes: [EventShape], _ field: Field) {
        for tag in tags where tag.kind != .close && tag.path != "." && !tag.isForm {
            let top = String(tag.path.prefix { $0 != "." })
            guard tag.depth == 0 || shapes.contains(where: { $0.paths.contains(top) }) else { continue }
            checkPath(tag.path, shapes, line: field.line, key: field.path)
        }
    }
}
