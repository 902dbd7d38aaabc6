package sdk_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mostLines is how many lines of code the SDKs for other languages may have: no blank
// lines, comments, docstrings, tests and generated code. What people test an extension
// with (switchboard/testing.py) and declarations of types (index.d.ts) do not count.
const mostLines = 600

func TestTheSDKForNodeIsSmall(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, file := range sources(t, "node/lib/*.js") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := linesOfJavaScript(string(text))
		t.Logf("%s has %d", file, n)
		sum += n
	}
	if sum > mostLines {
		t.Errorf("sdk/node has %d lines of code, at most %d", sum, mostLines)
	}
}

// linesOfJavaScript counts lines that hold more than a comment. A comment between /* and
// */ has lines of its own.
func linesOfJavaScript(text string) int {
	n, comment := 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment = comment || strings.HasPrefix(line, "/*")
		if line != "" && !comment && !strings.HasPrefix(line, "//") {
			n++
		}
		comment = comment && !strings.Contains(line, "*/")
	}
	return n
}

// countPython prints how many lines of a program on standard input hold code: a token
// that is neither a comment nor a text that stands alone.
const countPython = `
import ast, io, sys, tokenize
source = sys.stdin.read()
texts = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)]
blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
lines = set()
for t in tokenize.generate_tokens(io.StringIO(source).readline):
    if t.type not in blank:
        lines.update(range(t.start[0], t.end[0] + 1))
print(len(lines - {line for n in texts for line in range(n.lineno, n.end_lineno + 1)}))
`

func TestTheSDKForPythonIsSmall(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("it needs Python")
	}
	count := func(text string) (n int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, "-c", countPython)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, digit := range bytes.TrimSpace(out) {
			n = 10*n + int(digit-'0')
		}
		return n
	}
	sample := "\"\"\"About.\nMore.\"\"\"\nx = 1  # one\n\n# two\n\nclass C:\n    \"\"\"C.\"\"\"\n    a = f(\n        2)\n    \"\"\"a.\"\"\"\n"
	if n := count(sample); n != 4 {
		t.Fatalf("the sample has 4 lines of code, not %d", n)
	}
	sum := 0
	for _, file := range sources(t, "python/switchboard/*.py") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "testing.py" || bytes.HasPrefix(text, []byte("# Code generated")) {
			continue
		}
		n := count(string(text))
		t.Logf("%s has %d", file, n)
		sum += n
	}
	if sum > mostLines {
		t.Errorf("sdk/python has %d lines of code, at most %d", sum, mostLines)
	}
}

func TestLinesOfJavaScriptAreCounted(t *testing.T) {
	t.Parallel()
	if n := linesOfJavaScript("// one\n\n/** two\n * lines\n */\nconst x = 1; // one\n/* a */\nf(`\n`);\n"); n != 3 {
		t.Errorf("it counts %d lines, not 3", n)
	}
}

func sources(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}
