/// A table for a terminal: a header line, then one line for each row. Columns are aligned, two spaces apart.
///
/// Values come from untrusted input. Control characters are replaced, so that no value can move the cursor or set a
/// colour.
package struct TextTable: Hashable, Sendable {
    package enum Alignment: Hashable, Sendable { case left, right }

    /// A column's header and alignment. Numbers are aligned right.
    package struct Column: Hashable, Sendable {
        package var title: String
        package var alignment: Alignment

        package static func left(_ title: String) -> Column { Column(title: title, alignment: .left) }
        package static func right(_ title: String) -> Column { Column(title: title, alignment: .right) }
    }

    /// The colour of a cell on a terminal.
    package enum Style: Int, Hashable, Sendable {
        case plain = 0
        case bold = 1
        case red = 31
        case green = 32
        case yellow = 33
    }

    /// A cell. An empty text is shown as “-”.
    package struct Cell: Hashable, Sendable {
        package var text: String
        package var style: Style

        package init(_ text: String?, _ style: Style = .plain) {
            self.text = text ?? ""
            self.style = style
        }

        package init(_ number: some BinaryInteger, _ style: Style = .plain) { self.init("\(number)", style) }
    }

    private let columns: [Column]
    private var rows: [[Cell]] = []

    package init(_ columns: [Column]) { self.columns = columns }

    package var isEmpty: Bool { rows.isEmpty }

    package mutating func add(_ cells: [Cell]) { rows.append(cells) }

    package mutating func add(_ texts: [String?]) { add(texts.map { Cell($0) }) }

    /// The header line, then one line for each row, without blanks at the end.
    ///
    /// - Parameter isColored: Whether to write the colours of cells, and a bold header, as ANSI escape sequences.
    package func lines(isColored: Bool = false) -> [String] {
        let header = columns.map { Cell($0.title, .bold) }
        let table = [header] + rows.map { row in row.map(Self.shown) }
        let widths = columns.indices.map { column in table.map { $0[column].text.count }.max() ?? 0 }
        return table.map { row in
            var line = ""
            for (index, cell) in row.enumerated() {
                let gap = String(repeating: " ", count: widths[index] - cell.text.count)
                let isLast = index == row.count - 1
                let text = isColored ? Self.colored(cell.text, cell.style) : cell.text
                switch columns[index].alignment {
                case .left: line += isLast ? text : text + gap
                case .right: line += gap + text
                }
                if !isLast { line += "  " }
            }
            return isColored ? line : Self.trimmed(line)
        }
    }

    /// The cell with a printable text.
    private static func shown(_ cell: Cell) -> Cell {
        cell.text.isEmpty ? Cell("-", cell.style) : Cell(printable(cell.text), cell.style)
    }

    /// `text` with a style as an ANSI escape sequence.
    package static func colored(_ text: String, _ style: Style) -> String {
        style == .plain ? text : "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m"
    }

    /// `text` with a replacement for each control character, line separator and change of direction.
    package static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            result.unicodeScalars.append(isControl(scalar) ? "\u{fffd}" : scalar)
        }
        return result
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case ..<0x20, 0x7f..<0xa0, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    private static func trimmed(_ line: String) -> String {
        var line = line
        while line.last == " " { line.removeLast() }
        return line
    }
}
