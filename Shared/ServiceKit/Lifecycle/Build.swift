package enum Build {
    /// The release, as in CHANGELOG.md.
    package static let version = "0.1.0"
}
