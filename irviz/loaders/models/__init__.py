"""Load models of PyTorch, ONNX and TVM's own frontend as IRModules."""
