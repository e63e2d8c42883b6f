"""docs/querying.md: its statements run, its queries print what stands below them. `--update` writes that anew."""

from harness import ROOT, call

PAGE = ROOT / "docs" / "querying.md"
FENCE = "```"


def parts_of(text):
    """[prose or code]: ("text", …), ("sql", …), ("result", …)."""
    parts = []
    for number, piece in enumerate(text.split(FENCE)):
        if number % 2 == 0:
            parts.append(("text", piece))
        else:
            parts.append(("sql" if piece.startswith("sql\n") else "result", piece))
    return parts


def test_the_page(tmp_path, request):
    text = PAGE.read_text(encoding="utf-8")
    parts = list(parts_of(text))
    written, queries = [], 0
    place = 0
    while place < len(parts):
        kind, piece = parts[place]
        place += 1
        written.append(piece if kind == "text" else FENCE + piece + FENCE)
        if kind != "sql":
            continue
        statements = piece.removeprefix("sql\n")
        is_query = statements.lstrip().startswith("SELECT")
        done = call("sql", "--warehouse", tmp_path / "w", "-c", statements, cwd=tmp_path)
        assert done.returncode == 0, statements + done.stderr
        if not is_query:
            continue
        queries += 1
        printed = FENCE + "\n" + done.stdout + FENCE
        has_result = place + 1 < len(parts) and parts[place + 1][0] == "result" and not parts[place][1].strip()
        if request.config.getoption("--update"):
            written.append("\n\n" + printed)
            place += 2 if has_result else 0
            continue
        assert has_result, f"no result stands below\n{statements}"
        assert FENCE + parts[place + 1][1] + FENCE == printed, statements
    assert queries >= 12
    if request.config.getoption("--update"):
        PAGE.write_text("".join(written), encoding="utf-8")
