import DequeModule

/// Requests waiting for a stream: one FIFO queue for each priority. Pure.
///
/// After seven normal requests the next stream goes to a background request, so the background queue never starves.
struct PendingRequestQueue<Element> {
    private static var normalPerBackground: Int { 7 }

    private var normal: Deque<Element> = []
    private var background: Deque<Element> = []
    /// Normal requests that left while the first background request waited.
    private var normalSinceBackground = 0

    private var isBackgroundNext: Bool {
        !background.isEmpty && (normal.isEmpty || normalSinceBackground >= Self.normalPerBackground)
    }

    var next: Element? { isBackgroundNext ? background.first : normal.first }

    /// All waiting requests, in no particular order.
    var all: [Element] { Array(normal) + background }

    /// Removes the next request because it got a stream.
    mutating func takeNext() {
        let isBackground = isBackgroundNext
        dropNext()
        normalSinceBackground = isBackground ? 0 : normalSinceBackground + 1
    }

    /// Removes the next request without a stream; the share of the background is unchanged.
    mutating func dropNext() {
        if isBackgroundNext { background.removeFirst() } else { normal.removeFirst() }
    }

    mutating func append(_ elements: [Element], _ priority: RequestPriority) {
        switch priority {
        case .normal: normal.append(contentsOf: elements)
        case .background:
            if background.isEmpty { normalSinceBackground = 0 }
            background.append(contentsOf: elements)
        }
    }

    /// Puts a request before all others of its priority.
    mutating func prepend(_ element: Element, _ priority: RequestPriority) {
        switch priority {
        case .normal: normal.prepend(element)
        case .background:
            if background.isEmpty { normalSinceBackground = 0 }
            background.prepend(element)
        }
    }

    mutating func removeAll(where isFinished: (Element) -> Bool) {
        normal.removeAll(where: isFinished)
        background.removeAll(where: isFinished)
    }

    mutating func removeAll() { self = PendingRequestQueue() }
}
