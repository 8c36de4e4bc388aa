import FoundationEssentials

extension Trace {
    init(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        var members = try OrderedMembers(&scan)
        try members.require(#""causation":"#, &scan)
        let causation = try scan.text()
        try members.require(#""correlation":"#, &scan)
        let correlation = try scan.text()
        guard correlation.utf8.count <= WireCoding.maximumShortString else { throw JSONReader.Unusual() }
        try members.require(#""id":"#, &scan)
        let id = try scan.uuid()
        let traceparent = try members.find(#""traceparent":"#, &scan) ? try scan.optionalText() : nil
        try members.end(&scan)
        self.init(id: id, correlation: correlation, causation: causation, traceparent: traceparent)
    }
}
