import Testing

@testable import Console

@Suite struct HTMLTests {
    @Test func `an interpolated text is escaped, and markup stays`() {
        let hostile = "<script>alert('x')</script> & \"y\""
        let inner: HTML = "<b>\(hostile)</b>"
        let page: HTML = "<p title=\"\(hostile)\">\(inner)</p>"
        #expect(
            page.markup
                == "<p title=\"&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot;\">"
                + "<b>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot;</b></p>")
    }

    @Test func `absent and repeated parts`() {
        let absent: HTML? = nil
        let items = ["a", "<"].map { item -> HTML in "<li>\(item)</li>" }
        let list: HTML = "<ul>\(items)\(absent)</ul>\(3)"
        #expect(list.markup == "<ul><li>a</li><li>&lt;</li></ul>3")
    }

    @Test func `a page marks its section and shows those of the role only`() {
        let page = Page(title: "Rules", section: .rules, content: "<p>x</p>")
        let session = Session(name: "Kim <k>", role: .look)
        let markup = page.document(for: session, formToken: "t").markup
        #expect(markup.contains("<a href=\"/rules\" aria-current=\"page\">Rules</a>"))
        #expect(!markup.contains("href=\"/audit\"") && !markup.contains("href=\"/\""))
        #expect(markup.contains("Kim &lt;k&gt; · look"))
        #expect(!page.document(for: nil, formToken: "").markup.contains("<nav"))
    }
}
