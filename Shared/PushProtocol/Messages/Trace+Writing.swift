extension Trace {
    /// Whether all strings can be written in JSON unchanged.
    var needsNoEscaping: Bool {
        correlation.needsNoJSONEscaping && causation.needsNoJSONEscaping && (traceparent?.needsNoJSONEscaping ?? true)
    }

    /// The total size of the strings, in bytes.
    var byteCount: Int { correlation.utf8.count + causation.utf8.count + (traceparent?.utf8.count ?? 0) }

    /// Writes the member `trace`. Requires ``needsNoEscaping``.
    func write(to json: inout ByteWriter) {
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

    /// Writes the value of the member `trace`, escaping its strings.
    func write(to json: inout JSONByteWriter) {
        json.member(#"{"causation":"#, causation)
        json.member(#","correlation":"#, correlation)
        json.raw(#","id":"#)
        json.uuid(id)
        if let traceparent { json.member(#","traceparent":"#, traceparent) }
        json.raw("}")
    }
}
