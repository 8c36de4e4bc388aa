import PushProtocol
import Testing
import TestSupport

/// The validator of the tests finds faults; a validator that accepts everything would make the other tests worthless.
@Suite struct SchemaValidatorTests {
    /// A schema, a valid and an invalid value.
    private static let cases = [
        (##"{"type": "string"}"##, ##""x""##, ##"1"##),
        (##"{"type": ["integer", "null"]}"##, ##"null"##, ##"1.5"##),
        (##"{"const": 1}"##, ##"1.0"##, ##"2"##),
        (##"{"enum": ["a", 1]}"##, ##"1"##, ##""b""##),
        (##"{"pattern": "^[!-~]{1,3}$"}"##, ##""abc""##, ##""abcd""##),
        (##"{"minLength": 1}"##, ##""a""##, ##""""##),
        (##"{"maxLength": 1}"##, ##""é""##, ##""ab""##),
        (##"{"minimum": 1, "maximum": 2}"##, ##"2"##, ##"3"##),
        (##"{"exclusiveMinimum": 1}"##, ##"2"##, ##"1"##),
        (##"{"minItems": 1}"##, ##"[1]"##, ##"[]"##),
        (##"{"maxItems": 1}"##, ##"[1]"##, ##"[1, 2]"##),
        (##"{"items": {"type": "string"}}"##, ##"["a"]"##, ##"[1]"##),
        (##"{"contains": {"const": 1}}"##, ##"[0, 1]"##, ##"[0]"##),
        (##"{"required": ["a"]}"##, ##"{"a": 1}"##, ##"{"b": 1}"##),
        (##"{"properties": {"a": {"type": "null"}}}"##, ##"{"a": null}"##, ##"{"a": 1}"##),
        (##"{"properties": {"a": {}}, "additionalProperties": false}"##, ##"{"a": 1}"##, ##"{"b": 1}"##),
        (##"{"propertyNames": {"pattern": "^a"}}"##, ##"{"ab": 1}"##, ##"{"b": 1}"##),
        (##"{"not": {"const": 1}}"##, ##"2"##, ##"1"##),
        (##"{"anyOf": [{"const": 1}, {"const": 2}]}"##, ##"2"##, ##"3"##),
        (##"{"oneOf": [{"const": 1}, {"type": "integer"}]}"##, ##"2"##, ##"1"##),
        (##"{"allOf": [{"minimum": 1}, {"maximum": 2}]}"##, ##"1"##, ##"3"##),
        (##"{"if": {"minimum": 5}, "then": {"maximum": 6}, "else": {"minimum": 1}}"##, ##"3"##, ##"9"##),
        (##"{"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}"##, ##"1"##, ##"2"##),
    ]

    @Test(arguments: cases) func `each keyword accepts and refuses`(schema: String, valid: String, invalid: String)
        throws
    {
        let validator = SchemaValidator(try Self.json(schema))
        #expect(validator.problems(of: try Self.json(valid)) == [])
        #expect(!validator.accepts(try Self.json(invalid)))
    }

    private static func json(_ text: String) throws -> JSONValue {
        try WireCoding.decode(JSONValue.self, from: Array(text.utf8))
    }

    @Test func `an unknown keyword is a problem`() {
        #expect(!SchemaValidator(["unevaluatedProperties": false]).accepts([:]))
    }

    @Test func `a closed validator reports undescribed members`() {
        let schema: JSONValue = ["type": "object", "properties": ["a": [:]]]
        #expect(SchemaValidator(schema).accepts(["b": 1]))
        #expect(!SchemaValidator(schema, isClosed: true).accepts(["b": 1]))
    }

    @Test func `a body without an example, a wrong example and a wrong status are found`() {
        func problems(_ media: JSONValue) -> Int {
            let document: JSONValue = [
                "paths": ["/": ["get": ["responses": ["404": ["content": ["application/json": media]]]]]]
            ]
            return OpenAPIExamples.problems(in: document).count
        }
        let schema: JSONValue = ["type": "object", "properties": ["status": ["type": "integer"]]]
        #expect(problems(["schema": schema]) == 1)
        #expect(problems(["schema": schema, "example": ["status": "404"]]) == 1)
        #expect(problems(["schema": schema, "example": ["status": 400]]) == 1)
        #expect(problems(["schema": schema, "example": ["status": 404]]) == 0)
        #expect(problems(["schema": schema, "examples": ["one": ["value": ["status": 404]]]]) == 0)
    }
}
