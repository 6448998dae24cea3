# SPDX-License-Identifier: Apache-2.0
"""The command in an answer: ugly answers of every kind, and never prose."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.answers.command import extract_command, reads_like_a_command, reads_like_prose
from tests.growth import growth_of_time

JSON = {
    '{"command": "ls -la"}': "ls -la",
    '  {"command": "ls -la"}  \n': "ls -la",
    '{"command": "echo \\"hi\\" > f"}': 'echo "hi" > f',
    '{"command": "printf \'a\\nb\\n\' > f"}': "printf 'a\nb\n' > f",
    '{"command": "echo \\u0026\\u0026"}': "echo &&",
    '{"command": "awk \'{print $1}\' f"}': "awk '{print $1}' f",
    '{\n  "explanation": "It {lists}",\n  "command": "ls"\n}': "ls",
    'Sure, here is what you want: {"command": "ls"} Hope this helps!': "ls",
    '```json\n{"command": "wc -l f"}\n```': "wc -l f",
    '{"cmd": "pwd"}': "pwd",
    '{"name": "bash", "arguments": {"command": "ls"}}': "ls",
    '{"name": "run", "arguments": "{\\"command\\": \\"ls\\"}"}': "ls",
    '{"commands": ["mkdir a", "touch a/b"]}': "mkdir a\ntouch a/b",
    '{"command": ["ls", "-la"]}': "ls -la",
    '{"command": ["touch", "a b"]}': "touch\na b",
    '{"command": ["bash", "-lc", "ls | wc"]}': "ls | wc",
    'First {"command":"[your_command_here]"} then {"command":"ls"}': "ls",
    'Draft: {"command": "ls"}\nBetter: {"command": "ls -a"}': "ls -a",
    '{"command": "grep -c \'</think>\' f"}': "grep -c '</think>' f",
}
BROKEN_JSON = {
    '{"command": "grep \'\\.txt$\' x"}': "grep '\\.txt$' x",
    '```json\n{"command": "grep -c \'a\\.b\' f"}\n```': "grep -c 'a\\.b' f",
    '{"command": "echo "hi" > /tmp/x"}': 'echo "hi" > /tmp/x',
    '{"command": "cat <<E\nx\nE"}': "cat <<E\nx\nE",
    "{'command': 'ls -l'}": "ls -l",
    "{'command': \"echo 'a'\"}": "echo 'a'",
    '{"command": "ls", }': "ls",
}
MARKED = {
    "```bash\nfind . -name x\n```": "find . -name x",
    "```\nls\n```": "ls",
    "~~~sh\nls\n~~~": "ls",
    "```bash\nls": "ls",
    "```bash ls -l```": "ls -l",
    "Run:\n   ```bash\n   cd /tmp && ls\n   ```\n": "cd /tmp && ls",
    "```bash\nfor f in *; do\n  echo $f\ndone\n```": "for f in *; do\n  echo $f\ndone",
    "```python\nprint(1)\n```\nor\n```bash\necho 1\n```": "echo 1",
    "```bash\n# list\nls\n```\nAlternatively:\n```bash\nfind .\n```": "# list\nls",
    "Sure!\n```console\n$ ls -la\ntotal 0\n$ pwd\n/home\n```\nThis lists.": "ls -la\npwd",
    "```console\n$ echo a \\\n> b\na b\n```": "echo a \\\nb",
    "```sh\ncat <<EOF > f\n$ not a prompt\nEOF\n```": "cat <<EOF > f\n$ not a prompt\nEOF",
    "<command>ls -l</command>": "ls -l",
    "<answer>ls -l /tmp</answer>": "ls -l /tmp",
    "<answer>\n```bash\nls\n```\n</answer>": "ls",
    "Use `ls -la /tmp` to list.": "ls -la /tmp",
    "You can use the `find` command: `find . -name '*.py'`.": "find . -name '*.py'",
    "`ls`": "ls",
    "**Command:** `chmod 644 f`": "chmod 644 f",
}
PLAIN = {
    "find /tmp -name '*.log' -delete": "find /tmp -name '*.log' -delete",
    "ls": "ls",
    "$ ls -l": "ls -l",
    "root@box:~# ls -l": "ls -l",
    "user@box:/tmp$ ls -l\nfile1": "ls -l",
    "Command: mkdir -p /tmp/a": "mkdir -p /tmp/a",
    "Here is the command:\n\nls -la /tmp\n\nThis lists all files in it.": "ls -la /tmp",
    'for f in *.txt; do\n  mv "$f" x/\ndone': 'for f in *.txt; do\n  mv "$f" x/\ndone',
    "cat > f <<'EOF'\nThis is a line of text.\n\nmore\nEOF": "cat > f <<'EOF'\nThis is a line of text.\n\nmore\nEOF",
    "X=1 make all": "X=1 make all",
    "./run.sh --fast": "./run.sh --fast",
    "mytool --verbose in out": "mytool --verbose in out",
    "echo `date` > /tmp/now": "echo `date` > /tmp/now",
    "sudo rm -rf /tmp/x && echo done": "sudo rm -rf /tmp/x && echo done",
    "ls -l<|im_end|>": "ls -l",
    "[ -f a ] && rm a": "[ -f a ] && rm a",
}
REASONED = {
    '<think>I could {"command": "rm -rf /"}</think>\n{"command": "ls"}': "ls",
    "<think>\nhm\n</think>\n\nmv /a/b /c/d": "mv /a/b /c/d",
    "thought that was begun by the template\n</think>\n```bash\nls\n```": "ls",
    "<think>a</think>ls -l<think>b</think>": "ls -l",
    "<thinking>Use `rm`.</thinking>`ls -l`": "ls -l",
}
NO_COMMAND = [
    "",
    "   \n",
    "Done.",
    "hello",
    "I cannot help with that.",
    "I'm sorry, I can't.",
    "The answer is to use tar.",
    "1. First, create the directory\n2. Then list it",
    "find the files that were modified in the last day.",
    "Okay, so I need to remove the duplicates in '/home/user/uploads' whose names end in '_copy.txt'. Let me think.",
    "Okay, let's see. The user wants to combine all files in the '/logs/argo' directory into 'all.txt'. First",
    "mock answer 0 to: list the files in /tmp",
    '<think>never ends {"command": "ls"} ```bash\nls\n```',
    "<think>only thought</think>",
    '{"command": "ls -l',
    '{"command": ""}',
    '{"command": null}',
    '{"command": "[your_command_here]"}',
    '{"command": "..."}',
    "```bash\n```",
    "```bash\n# nothing but a comment\n```",
    "```python\nprint(1)\n```",
    "<answer>I do not know how to do it.</answer>",
    "The command `find` is what you need.",
]


@pytest.mark.parametrize(("answer", "command"), [*JSON.items(), *BROKEN_JSON.items()])
def test_a_command_in_json_is_found(answer: str, command: str) -> None:
    assert extract_command(answer) == command


@pytest.mark.parametrize(("answer", "command"), [*MARKED.items(), *PLAIN.items()])
def test_a_command_in_marked_or_plain_text_is_found(answer: str, command: str) -> None:
    assert extract_command(answer) == command


@pytest.mark.parametrize(("answer", "command"), REASONED.items())
def test_what_was_thought_is_not_run(answer: str, command: str) -> None:
    assert extract_command(answer) == command


@pytest.mark.parametrize("answer", NO_COMMAND)
def test_text_that_gives_no_command_yields_none(answer: str) -> None:
    assert extract_command(answer) is None


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_json_gives_back_any_command_exactly(command: str) -> None:
    assert extract_command(json.dumps({"command": f"echo {command}"})) == f"echo {command}".strip()


@given(st.text(), st.sampled_from(["{", "```bash\n", "`", "<think>", '{"command": "', "<command>", "$ "]))
def test_no_answer_is_too_strange(text: str, opening: str) -> None:
    for answer in (text, opening + text, text + opening, opening + text + opening):
        command = extract_command(answer)
        assert command is None or command.strip()


@pytest.mark.parametrize(
    "piece",
    [
        '{"command": "', '{"a": ', "{", "```bash\n", "```", "`x", "<think>", "</think>", "<command>", "a b. ", '"',
        "$ x\n", "'command': '", "x=1 ", "\\", " ", "\n", "<|a|>", "for x in a; do\n", "<<E\n", "ls 'a\n",
    ],
)  # fmt: skip
def test_a_long_answer_takes_no_longer_than_it_is_long(piece: str) -> None:
    """Eight times the text may take some eight times the work, within what is looked at; a quadratic pass takes 64."""
    work = growth_of_time(lambda size: extract_command(piece * (size // len(piece))), 8_000, times=8, at_least=0.002)
    assert work < 30


def test_english_and_shell_are_told_apart() -> None:
    assert reads_like_prose("This lists all files in the directory.")
    assert not reads_like_prose("ls -la /tmp | sort -k 5 | head")
    assert reads_like_a_command("tar czf a.tgz dir")
    assert not reads_like_a_command("The tar command packs files.")
