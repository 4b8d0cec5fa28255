"""Run modules on other machines through TVM's RPC servers."""
