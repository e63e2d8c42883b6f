#!/usr/bin/env python3
"""Proves that tidy.py finds what it is there for, and nothing else."""

import tempfile
import unittest
from pathlib import Path

import tidy


class TidySelfTest(unittest.TestCase):
    def check(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return tidy.findings(folder)

    def assert_clean(self, name, text):
        self.assertEqual(self.check(name, text), [])

    def assert_finding(self, name, text, part):
        found = self.check(name, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_inward_includes_are_allowed(self):
        self.assert_clean("src/delta/log.cc", '#include "delta/log.h"\n#include "storage/store.h"\n')
        self.assert_clean("src/duck/scan.cc", '#include "duckdb.h"\n#include <duckdb.h>\n')
        self.assert_clean("src/sql/a.cc", "#include <strandline/result.h>\n#include <fmt/format.h>\n")

    def test_outward_include_is_found_with_its_line(self):
        self.assert_finding(
            "src/delta/log.cc",
            '#include "base/error.h"\n\n# include "duck/connection.h"\n',
            "src/delta/log.cc:3: #include duck/connection.h: src/delta may not include src/duck",
        )
        self.assert_finding("src/base/a.h", '#include "storage/store.h"\n', "may include: nothing")
        self.assert_finding("src/sql/a.h", "#include <cdc/plan.h>\n", "src/sql may not")

    def test_new_folder_must_enter_the_table(self):
        self.assert_finding("src/misc/a.h", "#include <string>\n", "not in the table")

    def test_duckdb_header_outside_duck(self):
        self.assert_finding("src/pipeline/run.cc", '#include "duckdb.h"\n', "only src/duck")
        self.assert_finding("tests/logic/a.cc", "#include <duckdb.hpp>\n", "only src/duck")

    def test_public_headers_are_free_of_third_parties(self):
        self.assert_clean("include/strandline/a.h", "#include <vector>\n#include <strandline/b.h>\n")
        for line in ["#include <fmt/format.h>", "#include <simdjson.h>", '#include "base/error.h"']:
            self.assert_finding("include/strandline/a.h", line + "\n", "include/")

    def test_programs_see_the_public_api_only(self):
        self.assert_clean("cli/main.cc", '#include "run_command.h"\n#include <CLI/CLI.hpp>\n')
        self.assert_finding("cli/main.cc", '#include "engine/session.h"\n', "cli/ sees include/ only")

    def test_machine_paths_and_registry_hosts(self):
        for path in ["/wo" + "rk/main", "/ro" + "ot/x", "/ho" + "me/me"]:
            self.assert_finding("docs/a.md", f"see {path} there\n", "absolute path")
        self.assert_finding("docs/a.md", "from pypi" + ".org\n", "package registry")
        self.assert_clean("docs/a.md", "my_pipeline/home/x, $DIR/ro" "ot/a, a network/wo" "rk/b\n")


if __name__ == "__main__":
    unittest.main()
