"""Load modules, weights, inputs and sessions from untrusted files and objects.

Threat model: the author of a file is hostile. Opening a file runs nothing in it, follows no path
that it names (ONNX weights must lie in the model's own folder), and neither ends nor blocks this
process:

- Text is checked before a library sees it: `tvmscript` admits only known syntax and names,
  `tvm_json` only the types of a module, `models.pt2_models` only a graph and numbers,
  `param_files` only the pickle instructions of arrays. What is unknown is refused.
- TVM's, torch's and ONNX's readers then run in the worker first, with limits of time and memory
  (`file_limits.read_in_worker`).
- Sizes are bounded before anything is unpacked or allocated (`file_limits`).

Every refusal is a ValueError whose message is one sentence.
"""
