import FoundationEssentials

extension Trace {
    init(_ scan: inout CanonicalJSONReader) throws(JSONReader.NotCanonical) {
        var members = try SortedObjectReader(&scan)
        try members.require(#""causation":"#, &scan)
        let causation = try scan.text()
        try members.require(#""correlation":"#, &scan)
        let correlation = try scan.text()
        guard correlation.utf8.count <= WireCoding.maximumShortString else { throw JSONReader.NotCanonical() }
        try members.require(#""id":"#, &scan)
        let id = try scan.uuid()
        let traceparent = try members.find(#""traceparent":"#, &scan) ? try scan.optionalText() : nil
        try members.end(&scan)
        self.init(id: id, correlation: correlation, causation: causation, traceparent: traceparent)
    }
}
