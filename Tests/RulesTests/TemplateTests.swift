import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

@Suite struct TemplateTests {
    static let data = #"""
        {"name":"Pat","n":3,"x":2.5,"yes":true,"no":false,"nil":null,"empty":"","m":3000,"s":499.6,"big":1234567,
         "sender":{"name":"Sam","nick":null},"list":["a","b"],"people":[{"name":"A"},{"name":"B","age":2}],"none":[],
         "html":"<b>&\"'</b>","braces":"{{name}} {{{x}}} {{#a}}","sql":"'; DROP TABLE device; --","flags":"🇩🇪👨‍👩‍👧e\u0301"}
        """#

    @Test(arguments: [
        ("plain", "plain"), ("{{name}}", "Pat"), ("{{ name }} {{sender.name}}", "Pat Sam"),
        ("{{n}} {{x}} {{yes}}", "3 2.5 true"),
        ("{{html}}{{{html}}}{{&html}}", #"<b>&"'</b><b>&"'</b><b>&"'</b>"#),
        ("{{braces}} {{sql}}", "{{name}} {{{x}}} {{#a}} '; DROP TABLE device; --"),
        ("{{#sender}}{{name}}, {{n}}{{/sender}}", "Sam, 3"),
        ("{{#people}}[{{name}} {{n}}]{{/people}}", "[A 3][B 3]"), ("{{#list}}{{.}};{{/list}}", "a;b;"),
        ("{{#none}}some{{/none}}{{^none}}none {{name}}{{/none}}", "none Pat"),
        ("{{#nil}}1{{/nil}}{{^nil}}0{{/nil}}{{#no}}1{{/no}}{{^no}}0{{/no}}{{#yes}}1{{/yes}}", "001"),
        ("{{#empty}}{{empty}}{{/empty}}{{^empty}}New message{{/empty}}", "New message"),
        ("{{#gone}}1{{/gone}}{{^gone}}0{{/gone}}{{^sender.gone}}0{{/sender.gone}}", "00"),
        ("{{! a remark }}a\n{{#yes}}\nb\n{{/yes}}\nc", "a\nb\nc"), ("\n{{name}}", "\nPat"),
        ("  {{#yes}}  \n b {{n}}\n\t{{/yes}}\nc", " b 3\nc"), ("{{#yes}}\n{{/yes}} {{! c }}\nd", " \nd"),
        ("{{name}} {{#yes}}\n{{/yes}}", "Pat \n"), ("a\r\n{{^no}}\r\nb{{/no}}", "a\r\nb"),
        ("{{optional(nil)}}{{optional(gone)}}{{optional(km(gone))}}{{optional(name)}}", "Pat"),
        ("{{km(m)}} km, {{distance(m)}}, {{distance(s)}}, {{number(big)}}", "3 km, 3 km, 500 m, 1,234,567"),
        ("{{currencyEUR(s)}} {{currencyJPY(m)}} {{currencyKWD(n)}}", "€499.60 ¥3,000 KWD\u{a0}3.000"),
        ("{{uppercased(name)}} {{lowercased(name)}} {{capitalized(lowercased(name))}}", "PAT pat Pat"),
        ("{{count(list)}} {{first(list)}} {{last(list)}} {{#first(people)}}{{name}}{{/first(people)}}", "2 a b A"),
        ("{{#people}}{{#age}}{{age}}{{/age}}{{/people}}", "2"),
        ("{{excerpt2(flags)}}|{{excerpt3(flags)}}", "🇩🇪…|🇩🇪👨‍👩‍👧e\u{301}"), ("{{event.id}} {{event.type}}", "e-1 t"),
    ]) func `renders`(template: String, expected: String) throws {
        let scope = Scope(event: event("t", try json(TemplateTests.data)))
        #expect(try Template(template).render(scope) == expected)
    }

    @Test(
        arguments: [
            ("{{gone}}", .missing(path: "gone")), ("{{sender.gone}}", .missing(path: "sender.gone")),
            ("{{gone.deeper.still}}", .missing(path: "gone.deeper.still")), ("{{name.x}}", .missing(path: "name.x")),
            ("{{#people}}{{age}}{{/people}}", .missing(path: "age")),
            ("{{#sender}}{{gone}}{{/sender}}", .missing(path: "gone")),
            ("{{list.elements}}", .missing(path: "list.elements")),
            ("{{nil}}", .null(path: "nil")), ("{{km(nil)}}", .null(path: "nil")),
            ("{{km(gone)}}", .missing(path: "gone")),
            ("{{sender}}", .unsuitable(path: "sender", expected: "a text, a number or a boolean")),
            ("{{list}}", .unsuitable(path: "list", expected: "a text, a number or a boolean")),
            ("{{km(name)}}", .unsuitable(path: "name", expected: "a number")),
            ("{{count(name)}}", .unsuitable(path: "name", expected: "a list")),
            ("{{first(none)}}", .unsuitable(path: "none", expected: "a list that is not empty")),
            ("{{excerpt(yes)}}", .unsuitable(path: "yes", expected: "a string")),
        ] as [(String, RenderError.Problem)]) func `a missing variable is reported with its path`(
            template: String, expected: RenderError.Problem
        ) throws
    {
        let scope = Scope(event: event("t", try json(TemplateTests.data)))
        #expect(throws: expected) { try Template(template).render(scope) }
    }

    @Test func `nested sections over long lists are bounded`() throws {
        let list = Array(repeating: "1", count: 200).joined(separator: ",")
        let scope = Scope(event: event("t", try json(#"{"a":[\#(list)],"b":[\#(list)],"c":[\#(list)]}"#)))
        let error = #expect(throws: RenderError.Problem.self) {
            try Template("{{#a}}{{#b}}{{#c}}x{{/c}}{{/b}}{{/a}}").render(scope)
        }
        #expect(error?.description.contains("at most \(TemplateRenderer.mostElements) elements") == true)
        // A single list of that length is allowed.
        #expect(try Template("{{#a}}x{{/a}}").render(scope).count == 200)
    }

    @Test func `a text repeated by nested sections is bounded`() throws {
        let text = String(repeating: "x", count: 10_000)
        let list = Array(repeating: "1", count: 100).joined(separator: ",")
        let scope = Scope(event: event("t", try json(#"{"t":"\#(text)","a":[\#(list)]}"#)))
        #expect(throws: RenderError.Problem.self) { try Template("{{#a}}{{t}}{{/a}}").render(scope) }
        #expect(try Template("{{t}}{{t}}").render(scope).count == 20_000)
    }

    @Test(arguments: [
        ("{{name", "{{ is never closed"), ("{{{name}}", "{{ is never closed"),
        ("{{#a}}", "the section {{#a}} is never closed"), ("{{/a}}", "{{/a}} closes a section that is not open"),
        ("{{#a}}{{#b}}{{/a}}{{/b}}", "{{/a}} closes a section that is not open"),
        ("{{>partial}}", "{{> is not supported; use variables, sections and comments"),
        ("{{=<% %>=}}", "{{= is not supported; use variables, sections and comments"),
        ("{{% CONTENT_TYPE:HTML}}", "{{% is not supported; use variables, sections and comments"),
        ("{{}}", "“” is not a variable; write {{path.to.field}} or {{filter(path)}}"),
        ("{{a b}}", "“a b” is not a variable; write {{path.to.field}} or {{filter(path)}}"),
        ("{{a..b}}", "“a..b” is not a variable; write {{path.to.field}} or {{filter(path)}}"),
        ("{{excrept(a)}}", "there is no filter “excrept”; did you mean “excerpt”?"),
        ("{{wobble(a)}}", "there is no filter “wobble”"),
    ]) func `an invalid template is refused`(template: String, problem: String) {
        #expect(throws: TemplateError(problem: problem)) { try Template(template) }
    }

    @Test(
        arguments: [
            ("{{n}}", .int(3)), ("{{x}}", .double(2.5)), ("{{yes}}", .bool(true)), ("{{nil}}", .null),
            ("{{name}}", "Pat"),
            ("{{{n}}}", .int(3)), ("{{&n}}", .int(3)), ("{{list}}", ["a", "b"]),
            ("{{sender}}", ["name": "Sam", "nick": nil]),
            ("{{count(list)}}", .int(2)), ("{{km(m)}}", "3"), ("{{km(nil)}}", .null), ("n={{n}}", "n=3"),
            ("{{n}} ", "3 "),
            ("{{n}}{{n}}", "33"), ("{{optional(n)}}", .int(3)), ("{{optional(gone)}}", nil), ("{{optional(nil)}}", nil),
            ("3", "3"), ("{{braces}}", "{{name}} {{{x}}} {{#a}}"),
        ] as [(String, JSONValue?)]) func `a string that is one variable keeps the value's type`(
            template: String, expected: JSONValue?
        ) throws
    {
        let scope = Scope(event: event("t", try json(TemplateTests.data)))
        #expect(try DataTemplate(string: template).render(scope, place: "data") == expected)
    }

    @Test func `an optional member that is absent is left out`() throws {
        let template = DataTemplate.object([
            .init(name: "here", value: try DataTemplate(string: "{{n}}")),
            .init(name: "gone", value: try DataTemplate(string: "{{optional(gone)}}")),
            .init(name: "list", value: .array([try DataTemplate(string: "{{optional(nil)}}"), .constant(1)])),
        ])
        let scope = Scope(event: event("t", try json(TemplateTests.data)))
        #expect(try template.render(scope, place: "data") == ["here": 3, "list": [1]])
    }

    @Test(arguments: [
        (0, "0 m"), (0.4, "0 m"), (500, "500 m"), (999.4, "999 m"), (1000, "1 km"), (1609.344, "1.6 km"),
        (2500, "2.5 km"),
        (10000, "10 km"), (1e300, "1e+297 km"),
    ]) func `distances are rendered in metres or kilometres`(metres: Double, text: String) {
        #expect(Filter.distance.apply(.double(metres), .plain) == .string(text))
    }

    @Test(arguments: [
        (0.0, "0"), (-0.5, "-0.5"), (-1234, "-1,234"), (1234.56, "1,234.6"), (999, "999"), (1e6, "1,000,000"),
    ])
    func `thousands are grouped`(number: Double, text: String) {
        #expect(Filter.number.apply(.double(number), .plain) == .string(text))
    }

    @Test(arguments: [
        ("short", 5, "short"), ("longer", 5, "long…"), ("one two three", 8, "one two…"), ("one two three", 5, "one…"),
        ("", 3, ""), ("👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 2, "👩‍👩‍👧‍👦…"), ("abc", 1, "…"),
    ]) func `an excerpt is cut between grapheme clusters`(text: String, limit: Int, expected: String) {
        #expect(text.excerpt(limit) == expected)
    }
}
