package import PushProtocol

package struct GroupKey: Hashable, Comparable, Sendable {
    package var app: AppID
    package var group: String

    package init(
        app: AppID, group: String
    ) {
        self.app = app
        self.group = group
    }

    package static func < (a: GroupKey, b: GroupKey) -> Bool { (a.app.rawValue, a.group) < (b.app.rawValue, b.group) }
}
