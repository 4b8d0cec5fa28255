#!/usr/bin/env bash
# Build what is published, and use the wheel in an empty environment of the oldest and newest Python.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python -m hatchling build -d "$work/dist" 2>/dev/null
wheel=$(echo "$work"/dist/*.whl)
bytes=$(stat -c %s "$wheel")
if ((bytes > 1950000)); then
  echo "$(basename "$wheel") has $bytes bytes, more than 1.95 MB: is something in it that nobody needs?"
  exit 1
fi
found=()
for version in 3.{10..14}; do
  for python in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
    if "$python" -c "" 2>/dev/null; then
      found+=("$python")
      break
    fi
  done
done
cd "$work"
for python in $(printf '%s\n' "${found[0]}" "${found[-1]}" | uniq); do
  rm -rf empty
  "$python" -m venv empty
  empty/bin/pip install --quiet --disable-pip-version-check "$wheel"
  empty/bin/irviz demo --svg demo.svg >/dev/null
  empty/bin/python - <<'PROGRAM'
from irviz.course.digits import mlp_params
from irviz.course.mlp import MyModule

import irviz

session = irviz.Session(MyModule, params=mlp_params()).bind()
assert "<svg" in irviz.draw(session.current.module).svg
print(session.compare("1", "0"))
PROGRAM
  echo "$(basename "$wheel") ($bytes bytes) works with $(empty/bin/python --version)"
done
