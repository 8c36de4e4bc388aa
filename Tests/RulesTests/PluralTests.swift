import PushProtocol
import Testing

@testable import Rules

/// Plural forms by language.
@Suite struct PluralTests {
    /// Integer samples of each cardinal plural form, from Unicode CLDR.
    static let samples: [(language: String, forms: [PluralCategory: [Int64]])] = [
        ("ja", [.other: [0, 1, 2, 100]]), ("zh-Hant-HK", [.other: [0, 1, 7]]),
        ("en", [.one: [1], .other: [0, 2, 11, 21, 101]]), ("de-CH", [.one: [1], .other: [0, 2, 21]]),
        ("tr", [.one: [1], .other: [0, 2, 21]]), ("hi", [.one: [0, 1], .other: [2, 21]]),
        ("hy", [.one: [0, 1], .other: [2, 21]]),
        ("fr", [.one: [0, 1], .many: [1_000_000, 3_000_000], .other: [2, 21, 1_000_001]]),
        ("pt-BR", [.one: [0, 1], .many: [1_000_000], .other: [2]]), ("pt-PT", [.one: [1], .other: [0, 2]]),
        ("it", [.one: [1], .many: [1_000_000], .other: [0, 2, 11]]),
        ("es", [.one: [1], .many: [1_000_000], .other: [0, 2, 11]]), ("da", [.one: [1], .other: [0, 2]]),
        ("is", [.one: [1, 21, 101], .other: [0, 2, 11, 111]]), ("mk", [.one: [1, 21, 101], .other: [0, 2, 11]]),
        ("fil", [.one: [0, 1, 2, 3, 5, 7, 10], .other: [4, 6, 9, 14, 26]]),
        ("ru", [.one: [1, 21, 101], .few: [2, 4, 22, 104], .many: [0, 5, 11, 12, 14, 20, 111]]),
        ("uk", [.one: [1, 21], .few: [3, 23], .many: [0, 11, 13, 100]]),
        ("pl", [.one: [1], .few: [2, 4, 22, 104], .many: [0, 5, 11, 12, 14, 21, 25]]),
        ("cs", [.one: [1], .few: [2, 3, 4], .other: [0, 5, 22]]),
        ("hr", [.one: [1, 21, 101], .few: [2, 4, 22], .other: [0, 5, 11, 12, 20]]),
        ("sl", [.one: [1, 101], .two: [2, 102], .few: [3, 4, 103], .other: [0, 5, 11, 12]]),
        ("lt", [.one: [1, 21], .few: [2, 9, 22], .other: [0, 10, 11, 19, 20]]),
        ("lv", [.zero: [0, 10, 11, 19, 20, 30], .one: [1, 21, 101], .other: [2, 9, 22]]),
        ("ro", [.one: [1], .few: [0, 2, 19, 101, 119], .other: [20, 35, 100]]),
        (
            "ar",
            [
                .zero: [0], .one: [1], .two: [2], .few: [3, 10, 103, 110], .many: [11, 26, 99, 111],
                .other: [100, 101, 102, 200],
            ]
        ),
        ("he", [.one: [1], .two: [2], .other: [0, 3, 20]]),
        ("ga", [.one: [1], .two: [2], .few: [3, 6], .many: [7, 10], .other: [0, 11]]),
        ("cy", [.zero: [0], .one: [1], .two: [2], .few: [3], .many: [6], .other: [4, 5, 7]]),
        ("mt", [.one: [1], .two: [2], .few: [0, 3, 10, 103], .many: [11, 19, 111], .other: [20, 100]]),
    ]

    static func rules(_ tag: String) throws -> PluralRules {
        let language = try #require(Language(tag))
        return try #require(PluralRules(language), "\(tag)")
    }

    @Test func `each number has its language's plural form`() throws {
        for (tag, forms) in Self.samples {
            let rules = try Self.rules(tag)
            for (form, numbers) in forms {
                #expect(rules.categories.contains(form), "\(tag) \(form)")
                for number in numbers {
                    let operands = try #require(PluralOperands(.int(number)))
                    #expect(rules.category(operands) == form, "\(tag): \(number)")
                    let negative = try #require(PluralOperands(.int(-number)))
                    #expect(rules.category(negative) == form, "\(tag): \(-number)")
                }
            }
        }
    }

    @Test(arguments: [
        ("en", 1.5, PluralCategory.other), ("fr", 1.5, .one), ("fr", 2.5, .other), ("hi", 0.5, .one), ("da", 0.5, .one),
        ("ru", 1.5, .other), ("pl", 1.5, .other), ("cs", 1.5, .many), ("lt", 1.5, .many), ("hr", 1.1, .one),
        ("sl", 1.5, .few), ("he", 0.5, .one), ("is", 0.1, .one), ("lv", 0.1, .one), ("lv", 1.11, .zero),
        ("ro", 1.5, .few), ("en", 1.0, .one), ("ar", 1.5, .other),
    ]) func `fractions have plural forms`(tag: String, number: Double, form: PluralCategory) throws {
        let operands = try #require(PluralOperands(.double(number)))
        #expect(try Self.rules(tag).category(operands) == form)
    }

    @Test func `every language's declared forms are exactly those that its rules return`() throws {
        for (tag, _) in Self.samples {
            let rules = try Self.rules(tag)
            var given = Set((0...200).compactMap { PluralOperands(.int($0)).map(rules.category) })
            for value in [JSONValue.int(1_000_000), .double(0.5), .double(1.5), .double(10.1)] {
                given.formUnion(PluralOperands(value).map { [rules.category($0)] } ?? [])
            }
            #expect(given == Set(rules.categories), "\(tag)")
        }
        let klingon = try #require(Language("tlh"))
        #expect(PluralRules(klingon) == nil)
        #expect(
            PluralOperands("3") == nil && PluralOperands(.int(.min)) == nil && PluralOperands(.double(1e300)) == nil)
    }

    // MARK: In templates

    func said(_ template: String, _ number: JSONValue, in language: String = "en") throws -> String {
        let scope = Scope(root: ["n": number, "who": "Pat", "list": [1, 2]], localization: .plain)
        return try Template(template, in: Language(language)).render(scope)
    }

    static let requests =
        "{{#plural(n)}}{{#one}}1 request{{/one}}{{#other}}{{n}} requests of {{who}}{{/other}}{{/plural(n)}} waits"

    @Test func `a plural section renders the number's form and can use outer variables`() throws {
        #expect(try said(Self.requests, 1) == "1 request waits")
        #expect(try said(Self.requests, 3) == "3 requests of Pat waits")
        #expect(try said(Self.requests, 21, in: "en-GB") == "21 requests of Pat waits")
        let russian =
            "{{#plural(n)}}{{#one}}{{n}} день{{/one}}{{#few}}{{n}} дня{{/few}}{{#other}}{{n}} дней{{/other}}{{/plural(n)}}"
        #expect(
            try [1, 3, 5, 11, 21, 104].map { try said(russian, .int($0), in: "ru") } == [
                "1 день", "3 дня", "5 дней", "11 дней", "21 день", "104 дня",
            ])
        let counted =
            "{{#plural(count(list))}}{{#one}}one{{/one}}{{#other}}{{count(list)}}{{/other}}{{/plural(count(list))}}"
        #expect(try said(counted, 1) == "2")
        // Two nested sections.
        #expect(
            try said(
                "\(Self.requests), {{#plural(n)}}{{#other}}{{#plural(n)}}{{#one}}a{{/one}}{{#other}}b{{/other}}{{/plural(n)}}{{/other}}{{/plural(n)}}",
                1) == "1 request waits, a")
    }

    @Test func `a missing form falls back to other`() throws {
        let text = "{{#plural(n)}}{{#zero}}none{{/zero}}{{#other}}some{{/other}}{{/plural(n)}}"
        #expect(try [0, 1, 2, 11].map { try said(text, .int($0), in: "ar") } == ["none", "some", "some", "some"])
    }

    @Test func `a value that is not a number is an event error`() throws {
        #expect(throws: RenderError.Problem.unsuitable(path: "n", expected: "a number")) {
            try said(Self.requests, "3")
        }
        #expect(throws: RenderError.Problem.missing(path: "gone")) {
            try said("{{#plural(n)}}{{#other}}{{gone}}{{/other}}{{/plural(n)}}", 2)
        }
    }

    @Test(arguments: [
        (
            "{{#plural(n)}}{{#one}}1{{/one}}{{/plural(n)}}", "en",
            "{{#plural(n)}} needs {{#other}}…{{/other}} for all remaining numbers"
        ),
        (
            "{{#plural(n)}}{{#few}}1{{/few}}{{#other}}2{{/other}}{{/plural(n)}}", "de",
            "“few” is not a plural form of de, which has one, other"
        ),
        (
            "{{#plural(n)}}{{#one}}1{{/one}}{{#other}}2{{/other}}{{/plural(n)}}", "ja",
            "“one” is not a plural form of ja, which has other"
        ),
        (
            "{{#plural(n)}}{{#ohter}}2{{/ohter}}{{/plural(n)}}", "en",
            "“ohter” is not a plural form of en, which has one, other"
        ),
        (
            "{{#plural(n)}}{{^one}}2{{/one}}{{/plural(n)}}", "en",
            "a plural section contains only forms, such as {{#other}}"
        ),
        (
            "{{#plural(n)}}{{#other}}2{{/other}}{{#other}}2{{/other}}{{/plural(n)}}", "en",
            "a form occurs twice in {{#plural(n)}}"
        ),
        (
            "{{plural(n)}}", "en",
            "“plural” needs a section: {{#plural(n)}}{{#one}}…{{/one}}{{#other}}…{{/other}}{{/plural(n)}}"
        ),
        ("{{#plural_other(n)}}{{/plural_other(n)}}", "en", "there is no filter “plural_other”"),
    ]) func `an invalid plural section is refused`(text: String, language: String, problem: String) {
        let error = #expect(throws: TemplateError.self) { try Template(text, in: Language(language)) }
        #expect(error?.problem.hasPrefix(problem) == true, "\(error?.problem ?? "")")
    }

    @Test func `a text uses the plural rules of its own language, not the recipient's`() throws {
        let text = ruleFile(
            example: "{ n: 2, users: [1] }",
            say: """
                body: "{{#plural(n)}}{{#one}}1 day{{/one}}{{#other}}{{n}} days{{/other}}{{/plural(n)}}"
                      languages:
                        ru: { body: "{{#plural(n)}}{{#one}}{{n}} день{{/one}}{{#few}}{{n}} дня{{/few}}{{#other}}{{n}} дней{{/other}}{{/plural(n)}}" }
                        uk: { title: "Так" }
                """)
        let rules = try parse(text)
        let draft = try #require(
            try rules.evaluate(event("thing.happened", app: "test", ["n": 21, "users": [1]])).first)
        func body(_ language: String) throws -> String? {
            let language = try #require(Language(language))
            return try draft.localizer?.renderedText(Localization(language: language, zone: .utc)).content.body
        }
        #expect(try body("en") == "21 days")
        #expect(try body("ru") == "21 день")
        // English text, although Ukrainian has another form for 21.
        #expect(try body("uk") == "21 days")
        let wrong = text.replacing("{{#few}}{{n}} дня{{/few}}{{#other}}{{n}} дней{{/other}}", with: "")
        #expect(throws: RuleFileError.self) { try parse(wrong) }
        #expect(throws: RuleFileError.self) { try parse(text.replacing("{{n}} дня", with: "{{m}} дня")) }
    }
}
