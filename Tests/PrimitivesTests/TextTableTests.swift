import Primitives
import Testing

@Suite struct TextTableTests {
    private func table(_ rows: [[String?]]) -> TextTable {
        var table = TextTable([.left("name"), .right("number"), .left("note")])
        for row in rows { table.add(row) }
        return table
    }

    @Test func `columns are as wide as their widest cell, and numbers are aligned right`() {
        #expect(
            table([["a", "7", "x"], ["longer", "12345678", nil]]).lines() == [
                "name      number  note", "a              7  x", "longer  12345678  -",
            ])
        #expect(table([]).lines() == ["name  number  note"])
        #expect(table([]).isEmpty && !table([["a", "1", ""]]).isEmpty)
    }

    @Test func `a value cannot control the terminal`() {
        let lines = table([["\u{1b}[31ma\r\n", "\u{9b}1", "\u{202e}b\u{2028}"]]).lines()
        #expect(lines.count == 2)
        #expect(lines[1] == "\u{fffd}[31ma\u{fffd}\u{fffd}      \u{fffd}1  \u{fffd}b\u{fffd}")
        #expect(TextTable.printable("später 🥗 7") == "später 🥗 7")
    }

    @Test func `colours do not change the alignment`() {
        var table = TextTable([.left("state"), .right("count")])
        table.add([TextTable.Cell("ok", .green), TextTable.Cell(5)])
        #expect(table.lines() == ["state  count", "ok         5"])
        #expect(
            table.lines(isColored: true) == [
                "\u{1b}[1mstate\u{1b}[0m  \u{1b}[1mcount\u{1b}[0m", "\u{1b}[32mok\u{1b}[0m         5",
            ])
    }
}
