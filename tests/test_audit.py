"""The look-up of vulnerabilities never says that there are none where it has not looked."""

import importlib.util
import json
from pathlib import Path

_SPEC = importlib.util.spec_from_file_location(
    "irviz_test_audit", Path(__file__).with_name("audit.py")
)
audit = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(audit)

OWN = {"name": "irviz", "skip_reason": "distribution marked as editable"}
KNOWN = {"name": "jinja2", "version": "3.1.6", "vulns": []}
UNKNOWN = {"name": "numpy", "skip_reason": "Dependency not found on PyPI"}
VULNERABLE = {
    "name": "pillow",
    "version": "10.0.0",
    "vulns": [{"id": "PYSEC-2023-175", "fix_versions": ["10.0.1"]}],
}


def verdict(*packages):
    return audit.verdict(json.dumps({"dependencies": packages}), "")


def test_a_database_that_cannot_be_reached_is_one_sentence_and_no_success():
    words, code = audit.verdict("", "Traceback (most recent call last):\n  …\nConnectionError: no")
    assert code == 2
    assert words.startswith("Nothing was looked up (ConnectionError: no): ")
    assert "\n" not in words


def test_a_package_that_the_database_does_not_have_is_no_success():
    words, code = verdict(OWN, KNOWN, UNKNOWN)
    assert code == 2
    assert words.startswith("1 of 2 packages were not looked up, numpy first (Dependency not found")


def test_a_vulnerability_is_named_with_the_version_that_mends_it():
    assert verdict(OWN, KNOWN, VULNERABLE) == ("pillow 10.0.0: PYSEC-2023-175, mended in 10.0.1", 1)


def test_irviz_itself_is_not_looked_up():
    assert verdict(OWN, KNOWN) == ("None of 1 packages has a known vulnerability.", 0)
