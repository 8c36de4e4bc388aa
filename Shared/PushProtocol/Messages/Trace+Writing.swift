extension Trace {
    /// The total size of the strings, in bytes.
    var byteCount: Int { correlation.utf8.count + causation.utf8.count + (traceparent?.utf8.count ?? 0) }

    func write(to json: inout ByteWriter) {
        json.member(#"{"causation":"#, causation)
        json.member(#","correlation":"#, correlation)
        json.put(#","id":"#)
        json.quoted(id, .upper)
        if let traceparent { json.member(#","traceparent":"#, traceparent) }
        json.put("}")
    }
}
