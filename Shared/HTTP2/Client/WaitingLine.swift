import DequeModule

/// Who waits for a stream: a line for each precedence, either in the order in which it was joined. Pure.
///
/// Of the background one goes after every seven others: it waits longer then, and not for ever.
struct WaitingLine<Element> {
    private static var othersInTurn: Int { 7 }

    private var normal: Deque<Element> = []
    private var background: Deque<Element> = []
    /// How many have gone while the first of the background waited.
    private var passed = 0

    private var isBackgroundsTurn: Bool {
        !background.isEmpty && (normal.isEmpty || passed >= Self.othersInTurn)
    }

    var next: Element? { isBackgroundsTurn ? background.first : normal.first }

    /// Everybody, in no order.
    var all: [Element] { Array(normal) + background }

    /// The next one goes.
    mutating func takeNext() {
        let isBackgrounds = isBackgroundsTurn
        dropNext()
        passed = isBackgrounds ? 0 : passed + 1
    }

    /// The next one waits no more, and nobody has gone.
    mutating func dropNext() {
        if isBackgroundsTurn { background.removeFirst() } else { normal.removeFirst() }
    }

    mutating func append(_ elements: [Element], _ precedence: HTTP2Precedence) {
        switch precedence {
        case .normal: normal.append(contentsOf: elements)
        case .background:
            if background.isEmpty { passed = 0 }
            background.append(contentsOf: elements)
        }
    }

    /// Before everybody of the same precedence.
    mutating func prepend(_ element: Element, _ precedence: HTTP2Precedence) {
        switch precedence {
        case .normal: normal.prepend(element)
        case .background:
            if background.isEmpty { passed = 0 }
            background.prepend(element)
        }
    }

    mutating func removeAll(where isGone: (Element) -> Bool) {
        normal.removeAll(where: isGone)
        background.removeAll(where: isGone)
    }

    mutating func removeAll() { self = WaitingLine() }
}
