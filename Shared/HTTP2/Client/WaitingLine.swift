import DequeModule

/// Who waits for a stream: a line for each precedence, either in the order in which it was joined. Pure.
///
/// Of the background one goes after every seven others: it waits longer then, and not for ever.
struct WaitingLine<Element> {
    private static var othersInTurn: Int { 7 }

    private var normal: Deque<Element> = []
    private var background: Deque<Element> = []
    /// How many have gone before the first of the background.
    private var passed = 0

    private var isBackgroundsTurn: Bool {
        !background.isEmpty && (normal.isEmpty || passed == Self.othersInTurn)
    }

    var next: Element? { isBackgroundsTurn ? background.first : normal.first }

    /// Everybody, in no order.
    var all: [Element] { Array(normal) + background }

    mutating func removeNext() {
        if isBackgroundsTurn {
            background.removeFirst()
            passed = 0
        } else {
            normal.removeFirst()
            passed += background.isEmpty ? 0 : 1
        }
    }

    mutating func append(_ elements: [Element], _ precedence: HTTP2Precedence) {
        switch precedence {
        case .normal: normal.append(contentsOf: elements)
        case .background: background.append(contentsOf: elements)
        }
    }

    /// Before everybody of the same precedence.
    mutating func prepend(_ element: Element, _ precedence: HTTP2Precedence) {
        switch precedence {
        case .normal: normal.prepend(element)
        case .background: background.prepend(element)
        }
    }

    mutating func removeAll(where isGone: (Element) -> Bool) {
        normal.removeAll(where: isGone)
        background.removeAll(where: isGone)
    }

    mutating func removeAll() { self = WaitingLine() }
}
