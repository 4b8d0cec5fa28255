"""Look up known vulnerabilities of what is installed beside irviz: `make audit`.

pip-audit by itself reports no vulnerabilities where its database answers for no package, and prints
a traceback where the database cannot be reached. Here either is one sentence and the exit code 2.
"""

from __future__ import annotations

import json
import subprocess
import sys

_ADVICE = "run this where the vulnerability data of PyPI can be reached"


def main() -> int:
    """Print what was found; return 1 for vulnerabilities, 2 if not everything was looked up."""
    options = ("--local", "--skip-editable", "--format=json", "--progress-spinner=off")
    audit = subprocess.run(
        [sys.executable, "-m", "pip_audit", *options], capture_output=True, text=True, check=False
    )
    words, code = verdict(audit.stdout, audit.stderr)
    print(words)
    return code


def verdict(output: str, errors: str) -> tuple[str, int]:
    """Return what pip-audit's output says, and the exit code."""
    try:
        packages = json.loads(output)["dependencies"]
    except ValueError:
        reason = (errors.strip().splitlines() or ["no answer"])[-1]
        return f"Nothing was looked up ({reason}): {_ADVICE}.", 2
    found = [
        f"{one['name']} {one['version']}: {each['id']}, mended in "
        f"{', '.join(each['fix_versions']) or 'no version'}"
        for one in packages
        for each in one.get("vulns", [])
    ]
    skipped = {one["name"]: one["skip_reason"] for one in packages if "skip_reason" in one}
    unknown = [name for name, reason in skipped.items() if "editable" not in reason]
    asked = len(packages) - len(skipped) + len(unknown)
    if unknown:
        found.append(
            f"{len(unknown)} of {asked} packages were not looked up, {unknown[0]} first "
            f"({skipped[unknown[0]]}): {_ADVICE}."
        )
    code = 2 if unknown else 1 if found else 0
    return "\n".join(found) or f"None of {asked} packages has a known vulnerability.", code


if __name__ == "__main__":
    sys.exit(main())
