package switchboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeSpan     = regexp.MustCompile("`([^`]+)`")
	pathSpan     = regexp.MustCompile(`^[a-z_]+(/[A-Za-z0-9_.-]+)*(/|\.go)$`)
	functionSpan = regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Za-z]\w*)?\(\)$`)
)

// TestArchitectureNamesWhatThereIs checks docs/architecture.md: each file and folder
// exists, each function is declared in a file that the same paragraph names, and the
// table of the kernel's packages is complete.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for paragraph := range strings.Lines(string(text)) {
		var declared []string
		var named []string
		for _, span := range codeSpan.FindAllStringSubmatch(paragraph, -1) {
			switch name := span[1]; {
			case pathSpan.MatchString(name):
				if _, err := os.Stat(name); err != nil {
					t.Errorf("%s is named, and is not there", name)
				} else if strings.HasSuffix(name, ".go") {
					declared = append(declared, functionsOf(t, name)...)
				}
			case functionSpan.MatchString(name):
				named = append(named, strings.TrimSuffix(name, "()"))
			}
		}
		for _, name := range named {
			if functions++; !slices.Contains(declared, name) {
				t.Errorf("%s() is named, and no file that the paragraph names declares it", name)
			}
		}
	}
	if functions < 10 {
		t.Errorf("%d functions are named; there should be more", functions)
	}
	packages, err := filepath.Glob("kernel/*")
	if err != nil || len(packages) == 0 {
		t.Fatal(packages, err)
	}
	_, inside, _ := strings.Cut(string(text), "## Inside the kernel")
	for _, dir := range packages {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && !strings.Contains(inside, "`"+filepath.Base(dir)+"`") {
			t.Errorf("%s is missing in the table of packages", dir)
		}
	}
	for row := range strings.Lines(inside) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			if _, err := os.Stat(filepath.Join("kernel", span[1])); err != nil {
				t.Errorf("the table names a package %s, which is not there", span[1])
			}
		}
	}
}

// functionsOf are the functions of a file by their names, methods as Type.Method.
func functionsOf(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			of := f.Recv.List[0].Type
			if pointer, ok := of.(*ast.StarExpr); ok {
				of = pointer.X
			}
			if id, ok := of.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		names = append(names, name)
	}
	return names
}

// TestTheSpineIsAnAfternoonsReading bounds the files that docs/architecture.md names
// as its reading list.
func TestTheSpineIsAnAfternoonsReading(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, spine, found := strings.Cut(string(text), "## The spine")
	if !found {
		t.Fatal("docs/architecture.md names no spine")
	}
	lines, files := 0, 0
	for _, span := range codeSpan.FindAllStringSubmatch(spine, -1) {
		if !strings.HasSuffix(span[1], ".go") {
			continue
		}
		n, err := codeLines(span[1])
		if err != nil {
			t.Error(err)
		}
		lines += n
		files++
	}
	if files < 15 || lines > 4500 {
		t.Errorf("the spine is %d lines in %d files: at most 4,500 lines, in 15 files or more", lines, files)
	}
}
