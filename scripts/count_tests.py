#!/usr/bin/env python3
"""Adds up the test reports of a folder and prints 'N passed, N failed, N skipped'.

Reads ctest's report, each GoogleTest program's own report in place of its one ctest entry, and
pytest's. Exits 1 when a test failed, a part did not report, or no test ran at all.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "failed" if case.get("status") == "fail" else "passed"


def main(folder):
    count = {"passed": 0, "failed": 0, "skipped": 0}
    failures = [f"{path.stem}: did not report" for path in folder.glob("*.broken")]

    def add(report, prefix):
        outcomes = []
        for case in ET.parse(report).iter("testcase"):
            outcomes.append(outcome(case))
            count[outcomes[-1]] += 1
            if outcomes[-1] == "failed":
                failures.append(f"{prefix}{case.get('classname')}.{case.get('name')}")
        return outcomes

    ctest = folder / "ctest.junit"
    if not ctest.exists():
        failures.append("ctest: did not report")
    else:
        for entry in ET.parse(ctest).iter("testcase"):
            name = entry.get("name")
            report = folder / f"{name}.xml"
            cases = add(report, f"{name}: ") if report.exists() else []
            result = outcome(entry)
            # A program that crashed fails without a report, or with a report of passes only.
            if not cases or (result == "failed" and "failed" not in cases):
                count[result] += 1
                if result == "failed":
                    failures.append(name)
    for report in folder.glob("*.pytest.xml"):
        add(report, "")

    count["failed"] += len([f for f in failures if f.endswith("did not report")])
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


sys.exit(main(Path(sys.argv[1])))
