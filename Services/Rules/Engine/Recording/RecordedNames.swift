package import PushProtocol
import FoundationEssentials
import RuleLanguage

/// The names in a recording: every text that may be a user's id. An erasure finds the recordings of a user by them.
///
/// A user id that is only a part of a longer text does not count.
package enum RecordedNames {
    /// The digest of a name, for storage. Different names of an app have different digests with near certainty.
    package static func digest(_ name: String, of app: AppID) -> Int64 {
        let id = DerivedID.uuid5(DerivedID.namespace, ["recorded", app.rawValue, name]).uuid
        let bytes = [id.0, id.1, id.2, id.3, id.4, id.5, id.6, id.7]
        return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }
}

extension Recording {
    /// The names in the event and in the inputs.
    package var names: Set<String> {
        switch body {
        case .event(let recorded): recorded.event.event.names.union(recorded.inputs.names)
        case .page(let page): Set(page.users.map(\.rawValue)).union(page.inputs.names)
        case .held(let held): [held.user.rawValue]
        case .digest(let close): [close.user.rawValue]
        }
    }
}

extension DomainEvent {
    /// The subject, and the names in the data.
    package var names: Set<String> {
        var names: Set<String> = []
        if let subject, UserID(rawValue: subject) != nil { names.insert(subject) }
        data.addNames(to: &names, isOutermost: true)
        return names
    }
}

extension RecordedInputs {
    fileprivate var names: Set<String> {
        var names = Set(people.keys)
        for members in (groups ?? [:]).values { names.formUnion(members.map(\.user.rawValue)) }
        for replaced in (replaced ?? [:]).values { names.formUnion(replaced.map(\.user.rawValue)) }
        guard let items else { return names }
        for mark in [items.doneByUser, items.revoked, items.waiting].compactMap(\.self).joined() {
            if let user = mark.user { names.insert(user.rawValue) }
        }
        names.formUnion((items.revokedEvent ?? []).compactMap { $0?.rawValue })
        return names
    }
}

extension JSONValue {
    /// Adds the values that may be user ids, and the members' names of nested objects.
    fileprivate func addNames(to names: inout Set<String>, isOutermost: Bool = false) {
        switch self {
        case .string, .int: if let user = userID { names.insert(user.rawValue) }
        case .array(let elements): for element in elements { element.addNames(to: &names) }
        case .object(let members):
            if !isOutermost { names.formUnion(members.keys.filter { UserID(rawValue: $0) != nil }) }
            for member in members.values { member.addNames(to: &names) }
        case .null, .bool, .double: break
        }
    }
}
