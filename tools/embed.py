#!/usr/bin/env python3
"""Writes a C++ file that holds text files: `embed.py OUT.cpp NAMESPACE FUNCTION HEADER FILE…` defines
`const std::map<std::string, std::string_view>& NAMESPACE::FUNCTION()` from file stem to text."""
import pathlib
import sys


def literal(text: str) -> str:
    """The text as raw string literals, in pieces that every compiler accepts."""
    size = 8000
    return "\n".join(f'R"acu_text({text[i:i + size]})acu_text"' for i in range(0, max(len(text), 1), size))


def main() -> None:
    out, namespace, function, header, *files = sys.argv[1:]
    rows = [f'        {{"{pathlib.Path(f).stem}", {literal(pathlib.Path(f).read_text(encoding="utf-8"))}}},\n' for f in sorted(files)]
    pathlib.Path(out).write_text(
        f'#include "{header}"\n\nnamespace {namespace} {{\n\n'
        f"const std::map<std::string, std::string_view>& {function}() {{\n"
        f"    static const std::map<std::string, std::string_view> texts{{\n{''.join(rows)}    }};\n    return texts;\n}}\n\n"
        f"}}  // namespace {namespace}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
