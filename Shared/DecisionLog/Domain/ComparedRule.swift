/// A rule with variants.
package struct ComparedRule: Hashable, Sendable {
    package let name: String
    /// The preference type of its notifications.
    package let type: String?
    /// In the order of the file.
    package let variants: [VariantReport.Variant]

    package init(
        name: String, type: String?, variants: [(name: String, rule: String, share: Int, isHeldOut: Bool)]
    ) {
        self.name = name
        self.type = type
        self.variants = variants.map {
            VariantReport.Variant(name: $0.name, rule: $0.rule, share: $0.share, isHeldOut: $0.isHeldOut)
        }
    }
}
