extension Trace {
    /// Whether its texts stand in JSON as they are.
    var isPlain: Bool {
        correlation.isPlainJSON && causation.isPlainJSON && (traceparent?.isPlainJSON ?? true)
    }

    /// The bytes of its texts.
    var length: Int { correlation.utf8.count + causation.utf8.count + (traceparent?.utf8.count ?? 0) }

    /// Writes its member of a message, which has to be plain.
    func write(to json: inout ByteCursor) {
        json.put(#""trace":{"causation":""#)
        json.put(text: causation)
        json.put(#"","correlation":""#)
        json.put(text: correlation)
        json.put(#"","id":""#)
        json.put(id, .upper)
        if let traceparent {
            json.put(#"","traceparent":""#)
            json.put(text: traceparent)
        }
        json.put("\"}")
    }

    /// Writes the value of that member, whatever is in its texts.
    func write(to json: inout JSONOutput) {
        json.member(#"{"causation":"#, causation)
        json.member(#","correlation":"#, correlation)
        json.raw(#","id":"#)
        json.uuid(id)
        if let traceparent { json.member(#","traceparent":"#, traceparent) }
        json.raw("}")
    }
}
