; Which nodes open a scope, bind a name, or make the names of a scope unknowable.
; The capture name is the kind of event; grammars/scope_collector.py says what each kind does.

; Scopes.
(function_definition) @function
(class_definition) @class
(lambda) @lambda
(list_comprehension) @comprehension
(set_comprehension) @comprehension
(dictionary_comprehension) @comprehension
(generator_expression) @comprehension
(type_alias_statement) @type_alias

; Bindings.
(assignment) @assignment
(augmented_assignment) @augmented
(named_expression) @walrus
(for_statement) @for
(while_statement) @while
(as_pattern) @as
(except_clause) @except
(import_statement) @import
(import_from_statement) @import
(future_import_statement) @future
(delete_statement) @delete
(global_statement) @global
(nonlocal_statement) @nonlocal
(case_pattern (dotted_name . (identifier) .)) @capture
(keyword_pattern (identifier) (dotted_name . (identifier) .) @capture)
(union_pattern (dotted_name . (identifier) .) @capture)
(splat_pattern (identifier)) @capture
(as_pattern (case_pattern) (identifier) @capture .)

; Attributes that come to exist.
(assignment left: (attribute) @attribute_target)
(pattern_list (attribute) @attribute_target)
(tuple_pattern (attribute) @attribute_target)

; Names that come to exist everywhere: `gettext.install(...)`, `translations.install()`.
((call function: (attribute attribute: (identifier) @install))
  (#eq? @install "install"))

; Where names may come from nowhere.
(import_from_statement (wildcard_import)) @hatch.star_import
((call function: (identifier) @hatch.call)
  (#any-of? @hatch.call "exec" "globals" "vars" "locals"))
; Members of an enum become names of the module.
((attribute attribute: (identifier) @hatch.export)
  (#any-of? @hatch.export "_convert_" "global_enum"))
((decorator (identifier) @hatch.export)
  (#any-of? @hatch.export "global_enum"))
; sys.modules[__name__]
((subscript value: (attribute attribute: (identifier) @_modules) subscript: (identifier) @hatch.module)
  (#eq? @_modules "modules") (#eq? @hatch.module "__name__"))
; assertRaises(NameError, function)
((call arguments: (argument_list . (identifier) @expected))
  (#any-of? @expected "NameError" "UnboundLocalError"))
(try_statement) @try
(with_statement (with_clause) @with)
