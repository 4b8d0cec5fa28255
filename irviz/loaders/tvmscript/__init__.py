"""Read TVMScript without running it.

Threat model: `tvm.script.from_source` evaluates the Python in a text with all builtins: sizes,
annotations, decorators, indices, and strings in shapes. Three barriers stand between a hostile text
and that evaluation; each must hold by itself:

1. `admission` walks over the syntax tree as TVM does, and refuses every node, name and attribute
   that TVMScript does not need (`admitted_statements`, `admitted_expressions`, `gpu_expressions`;
   `dialect` lists the names, `gpu_dialect` those for GPUs, `imported_names` what imports mean,
   `source_text` follows the variables, `number_bounds` bounds the arithmetic, `metadata` checks
   the JSON of constants, `syntax_tree` limits size and depth).
2. `audit` checks every node once more, wherever it stands.
3. `restricted_parser` runs TVM's parser without Python's builtins.

`read_modules` then reads the admitted text: in the worker first, then here.
"""
