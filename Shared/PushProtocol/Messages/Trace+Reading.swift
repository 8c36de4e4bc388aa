import FoundationEssentials

extension Trace {
    init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        try members.require(#""causation":"#, &reader)
        let causation = try reader.string()
        try members.require(#""correlation":"#, &reader)
        let correlation = try reader.string()
        guard correlation.utf8.count <= WireCoding.maximumShortString else { throw JSONReader.Unreadable() }
        try members.require(#""id":"#, &reader)
        let id = try reader.uuid()
        let traceparent = try members.find(#""traceparent":"#, &reader) ? try reader.optionalString() : nil
        try members.end(&reader)
        self.init(id: id, correlation: correlation, causation: causation, traceparent: traceparent)
    }
}
