#!/usr/bin/env python3
"""Prints how long files and functions are, folder by folder, against the project's limits.

A pass and a header have at most 150 lines and any file at most 600, unless its first comment says
`longer than 600 lines because …`. Of a folder's functions 90 % have at most 25 lines, and none more than 60.
With --check only a file over 600 lines that does not say why is a failure; the rest is for a person to read.
"""
import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from source_files import ROOT, source_files

PASS_LINES = HEADER_LINES = 150
FILE_LINES = 600
FUNCTION_P90, FUNCTION_MAX = 25, 60
CPP, PYTHON = {".h", ".cpp", ".cuh"}, {".py"}
REASON = "longer than 600 lines because"

# What may hide a brace: comments, raw strings, strings, characters (but not the ' of 1'000), preprocessor lines.
HIDDEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)\"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
INITIALISER = re.compile(r"\)[^{]*:[^:].*[\w>]$", re.DOTALL)


@dataclass(frozen=True)
class Function:
    name: str
    lines: int


@dataclass
class Folder:
    files: dict[str, int] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)


def _blank(match: re.Match[str]) -> str:
    """Keeps the line ends, so that lines still count."""
    return re.sub(r"[^\n]", " ", match[0])


def cpp_functions(text: str) -> list[Function]:
    """The functions of a C++ file, by their braces; those inside functions (lambdas, local types) belong to the outer one."""
    text = HIDDEN.sub(_blank, text)
    found: list[Function] = []
    open_braces: list[tuple[str, str, int]] = []  # kind, head, first line
    head_start = 0
    for match in re.finditer(r"[{};]", text):
        at, inside = match.start(), open_braces[-1][0] if open_braces else "scope"
        head = text[head_start:at]
        if match[0] == "{":
            kind = _brace_kind(head) if inside == "scope" else "value" if inside == "value" else "inner"
            open_braces.append((kind, head.strip(), text.count("\n", 0, at - len(head.lstrip())) + 1))
        elif match[0] == "}" and open_braces:
            kind, name, first = open_braces.pop()
            if kind == "function":
                found.append(Function(_function_name(name), text.count("\n", 0, at) + 2 - first))
            if kind == "value":
                continue  # the head goes on behind a member initialiser
        if not (match[0] == "{" and kind == "value"):
            head_start = at + 1
    return found


def _brace_kind(head: str) -> str:
    """What a brace at namespace or class level opens: a scope, a function body or a value."""
    plain = re.sub(r"template\s*<[^{]*?>\s*(?=\w)", "", head)  # `template <class T>` opens no class
    if INITIALISER.search(head) and not head[-1].isspace():
        return "value"
    before_call = plain.partition("(")[0]
    if SCOPE.search(before_call) and "operator" not in before_call and not re.search(r"\)\s*(?:const|noexcept)?\s*$", plain):
        return "scope"
    is_call = ")" in plain and not re.search(r"(?<![=!<>])=(?!=)", before_call.replace("operator=", ""))
    return "function" if is_call else "inner"


def _function_name(head: str) -> str:
    match = re.search(r"([\w:~]+|operator\W{1,3})\s*\(", head)
    return match[1] if match else "?"


def python_functions(text: str) -> list[Function]:
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [Function(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in nodes]


def first_comment(text: str) -> str:
    """The first run of comment lines (or the docstring) as one line of text."""
    match = re.search(r"(?:^[ \t]*(?://|#(?!include|pragma|!)).*\n)+|/\*.*?\*/|\"\"\".*?\"\"\"", text, re.MULTILINE | re.DOTALL)
    return " ".join(re.sub(r"[/*#]", " ", match[0]).split()) if match else ""


def quantile(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def read_folders(root: Path) -> tuple[dict[str, Folder], list[str], list[str]]:
    """Measures every file; returns the folders, the failures, and the remarks that fail nothing."""
    folders: dict[str, Folder] = {}
    failures: list[str] = []
    remarks: list[str] = []
    for path in source_files(root, CPP | PYTHON):
        name, text = str(path.relative_to(root)), path.read_text()
        functions = python_functions(text) if path.suffix in PYTHON else cpp_functions(text)
        folder = folders.setdefault(str(Path(name).parent), Folder())
        folder.files[name] = lines = text.count("\n")
        folder.functions += functions
        if lines > FILE_LINES and REASON not in first_comment(text):
            failures.append(f"{name}: {lines} lines, more than {FILE_LINES}, and its first comment does not say `{REASON} …`")
        remarks += file_remarks(name, lines, functions)
    return folders, failures, remarks


def file_remarks(name: str, lines: int, functions: list[Function]) -> list[str]:
    found = [f"{name}: {f.name} has {f.lines} lines, more than {FUNCTION_MAX}" for f in functions if f.lines > FUNCTION_MAX]
    if name.endswith(".h") and lines > HEADER_LINES:
        found.append(f"{name}: a header of {lines} lines, more than {HEADER_LINES}")
    if name.startswith("ir/pass/") and name.endswith(".cpp") and lines > PASS_LINES:
        found.append(f"{name}: a pass of {lines} lines, more than {PASS_LINES}")
    return found


def print_table(folders: dict[str, Folder]) -> None:
    width = max(map(len, folders), default=6) + 1
    print(f"{'':<{width}} {'files':>6} {'lines':>6}   median    p90    max  functions   median    p90    max")
    for name, folder in folders.items():
        sizes, lengths = list(folder.files.values()), [function.lines for function in folder.functions]
        over = " *" if quantile(lengths, 0.9) > FUNCTION_P90 else ""
        print(
            f"{name:<{width}} {len(sizes):>6} {sum(sizes):>6}   {quantile(sizes, 0.5):>6} {quantile(sizes, 0.9):>6} {max(sizes):>6}"
            f"  {len(lengths):>9}   {quantile(lengths, 0.5):>6} {quantile(lengths, 0.9):>6} {max(lengths, default=0):>6}{over}"
        )
    print(f"* p90 above {FUNCTION_P90} lines")


def main() -> int:
    folders, failures, remarks = read_folders(ROOT)
    print_table(folders)
    print("\n".join(["", *remarks, *failures]))
    print(f"{0 if failures else 1} passed, {len(failures)} failed")
    return 1 if failures and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
