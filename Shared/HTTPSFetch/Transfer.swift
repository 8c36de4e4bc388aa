internal import CCurl
internal import Glibc

/// The input of a transfer.
struct TransferSpecification: Sendable {
    let request: FetchRequest
    let target: FetchTarget
    let limits: HTTPSFetch.Limits
}

/// A running request: libcurl's easy handle, its header list, and the response received so far.
///
/// Confined to the engine's thread. The loop retains it while the handle is in the multi handle, so callbacks use
/// `passUnretained`.
final class Transfer {
    let id: Int
    let handle: UnsafeMutableRawPointer
    private let origin: String
    private let maximumResponseSize: Int
    private var headerList: UnsafeMutablePointer<curl_slist>?
    /// The buffer for libcurl's error message.
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var headers: [(name: String, value: String)] = []
    private var headerBytes = 0
    private var body: [UInt8] = []
    private var isTooLarge = false
    private let keepsBody: Bool
    private let mayConnect: HTTPSFetch.AddressCheck?
    private var hasRefusedAddress = false
    private var hasAllowedAddress = false

    init(id: Int, _ specification: TransferSpecification) throws(FetchError) {
        origin = specification.target.origin
        maximumResponseSize = specification.limits.maximumResponseSize
        keepsBody = specification.limits.keepsBody
        mayConnect = specification.limits.mayConnect
        guard let handle = curl_easy_init() else {
            throw FetchError(code: .broken, origin: origin, detail: "libcurl has no memory left")
        }
        self.id = id
        self.handle = handle
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try configure(specification)
    }

    /// Frees the handle, which the loop has already removed from the multi handle.
    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(headerList)
        errorBuffer.deallocate()
    }

    /// Returns the result of a finished transfer.
    func outcome(_ code: CURLcode) -> Result<FetchResponse, FetchError> {
        if isTooLarge {
            return .failure(
                FetchError(
                    code: .responseTooLarge, origin: origin,
                    detail: "the response is larger than \(maximumResponseSize) bytes"))
        }
        if code == CURLE_COULDNT_CONNECT, hasRefusedAddress, !hasAllowedAddress {
            return .failure(
                FetchError(code: .addressRefused, origin: origin, detail: "the host has no address that is allowed"))
        }
        guard code == CURLE_OK else { return .failure(error(code)) }
        var status = 0
        _ = shim_easy_getinfo_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return .success(FetchResponse(status: status, headers: headers, body: body))
    }

    private func error(_ code: CURLcode) -> FetchError {
        let reason = String(cString: errorBuffer)
        return FetchError(
            code: FetchError.Code(code), origin: origin,
            detail: reason.isEmpty ? String(cString: curl_easy_strerror(code)) : reason)
    }
}

// MARK: - Options

extension Transfer {
    private func configure(_ specification: TransferSpecification) throws(FetchError) {
        let (request, target, limits) = (specification.request, specification.target, specification.limits)
        set(CURLOPT_ERRORBUFFER, errorBuffer)
        set(CURLOPT_URL, target.url)
        set(CURLOPT_PROTOCOLS_STR, target.isPlain ? "http" : "https")
        // Plain http is for loopback or a trusted network; both bypass proxies.
        if target.isPlain { set(CURLOPT_NOPROXY, "*") }
        set(CURLOPT_FOLLOWLOCATION, 0)
        // libcurl's signal-based time-outs are not thread-safe.
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(limits.connectTimeout))
        set(CURLOPT_TIMEOUT_MS, Self.milliseconds(limits.timeout))
        setTrust(caFile: limits.caFile)
        setBody(of: request)
        try setHeaders(of: request)
        let context = Unmanaged.passUnretained(self).toOpaque()
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        _ = shim_easy_setopt_callback(handle, CURLOPT_HEADERFUNCTION, receiveHeader)
        set(CURLOPT_HEADERDATA, context)
        _ = shim_easy_setopt_callback(handle, CURLOPT_WRITEFUNCTION, receiveBody)
        set(CURLOPT_WRITEDATA, context)
        if mayConnect != nil {
            _ = shim_easy_setopt_opensocket(handle, openSocket)
            set(CURLOPT_OPENSOCKETDATA, context)
            set(CURLOPT_PROXY, "")
        }
    }

    private func setTrust(caFile: String?) {
        set(CURLOPT_SSL_VERIFYPEER, 1)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        // 6 is CURL_SSLVERSION_TLSv1_2, a member of an anonymous enum, which Swift does not import.
        set(CURLOPT_SSLVERSION, 6)
        guard let caFile else { return }
        set(CURLOPT_CAINFO, caFile)
        // Otherwise libcurl would trust the system's directory too.
        _ = shim_easy_setopt_string(handle, CURLOPT_CAPATH, nil)
    }

    private func setBody(of request: FetchRequest) {
        if !request.body.isEmpty || request.method == "POST" {
            _ = shim_easy_setopt_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count))
            // Never a null pointer, which makes libcurl read the body from a callback.
            (request.body + [0]).withUnsafeBytes {
                _ = shim_easy_setopt_bytes(handle, CURLOPT_COPYPOSTFIELDS, $0.baseAddress)
            }
        }
        switch request.method {
        case "GET" where request.body.isEmpty: set(CURLOPT_HTTPGET, 1)
        case "HEAD": set(CURLOPT_NOBODY, 1)
        case "POST": break
        default: set(CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    private func setHeaders(of request: FetchRequest) throws(FetchError) {
        // Disables “Expect: 100-continue”: the bodies are small.
        var lines = ["Expect:"]
        for (name, value) in request.headers {
            // For libcurl, “name:” removes a header, and “name;” sends an empty one.
            lines.append(value.allSatisfy(\.isWhitespace) ? "\(name);" : "\(name): \(value)")
        }
        for line in lines {
            guard let longer = curl_slist_append(headerList, line) else {
                throw FetchError(code: .broken, origin: origin, detail: "libcurl has no memory left")
            }
            headerList = longer
        }
        _ = shim_easy_setopt_list(handle, CURLOPT_HTTPHEADER, headerList)
    }

    private func set(_ option: CURLoption, _ value: Int) { _ = shim_easy_setopt_long(handle, option, value) }

    private func set(_ option: CURLoption, _ value: String) { _ = shim_easy_setopt_string(handle, option, value) }

    private func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
        _ = shim_easy_setopt_pointer(handle, option, value)
    }

    private static func milliseconds(_ duration: Duration) -> Int { max(1, Int(duration / .milliseconds(1))) }
}

// MARK: - Callbacks, on the engine's thread, from within libcurl

private func receiveHeader(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    let line = UnsafeRawBufferPointer(start: data, count: size * count)
    return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue().receive(header: line)
}

private func receiveBody(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    let bytes = UnsafeRawBufferPointer(start: data, count: size * count)
    return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue().receive(body: bytes)
}

/// Called after the host's name was resolved, for each address that libcurl tries.
private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ target: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    // CURL_SOCKET_BAD, a macro that Swift does not import.
    guard let context, let target else { return -1 }
    return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue().makeSocket(to: target)
}

extension Transfer {
    /// Returns a socket for the address, or -1 if the address is refused.
    fileprivate func makeSocket(to target: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr), let mayConnect else { return -1 }
        let length = Int(target.pointee.addrlen)
        // The address is longer than `sockaddr`, the type of the member.
        let address = UnsafeRawBufferPointer(start: UnsafeRawPointer(target) + offset, count: length)
        let bytes: [UInt8]
        switch target.pointee.family {
        case AF_INET where length >= 8: bytes = Array(address[4..<8])
        case AF_INET6 where length >= 24: bytes = Array(address[8..<24])
        default: bytes = []
        }
        guard mayConnect(bytes) else {
            hasRefusedAddress = true
            return -1
        }
        hasAllowedAddress = true
        let type = target.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        return socket(target.pointee.family, type, target.pointee.protocol)
    }

    /// Returns the number of bytes accepted; a smaller number than given aborts the transfer.
    fileprivate func receive(header line: UnsafeRawBufferPointer) -> Int {
        let text = String(decoding: line, as: UTF8.self)
        // The status line of the next response: the previous one was an interim response (1xx).
        if text.hasPrefix("HTTP/") { (headers, headerBytes) = ([], 0) }
        headerBytes += line.count
        guard headerBytes <= maximumResponseSize else {
            isTooLarge = true
            return 0
        }
        if let colon = text.firstIndex(of: ":"), !text.hasPrefix("HTTP/") {
            let value = text[text.index(after: colon)...]
            headers.append((text[..<colon].lowercased(), value.trimmed()))
        }
        return line.count
    }

    fileprivate func receive(body bytes: UnsafeRawBufferPointer) -> Int {
        guard keepsBody else { return bytes.count }
        guard body.count + bytes.count <= maximumResponseSize else {
            isTooLarge = true
            return 0
        }
        body.append(contentsOf: bytes)
        return bytes.count
    }
}

extension Substring {
    fileprivate func trimmed() -> String {
        var text = self
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}
