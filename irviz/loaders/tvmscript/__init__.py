"""Read TVMScript without running it.

Threat model: `tvm.script.from_source` evaluates the Python in a text with all builtins: sizes,
annotations, decorators, indices, and strings in shapes. Three barriers stand between a hostile text
and that evaluation; each must hold by itself:

1. `admission` walks over the syntax tree as TVM does, and refuses every node, name and attribute
   that TVMScript does not need. `admitted_expressions` checks expressions and bounds their numbers,
   `allowed_names` lists the names, `names_and_scopes` follows the variables, and `syntax_tree`
   limits size and depth.
2. `admission_recheck` checks every node once more, wherever it stands.
3. `read_modules` runs TVM's parser without Python's builtins: in the worker first, then here.
"""
