/// The item of a thing in progress (``LiveEntry``), as decisions and `revoke` name it.
package enum LiveItem {
    /// Returns `live/<entry>/<item>`.
    static func name(of item: String, in entry: String) -> String { "live/\(entry)/\(item)" }

    /// Returns the entry, and the item in it; `nil` for any other item.
    package static func parts(of name: String) -> (entry: String, item: String)? {
        let parts = name.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "live" else { return nil }
        return (String(parts[1]), String(parts[2]))
    }
}
