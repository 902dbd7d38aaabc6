package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait. It is long because the machine may be busy, and
// only a test that fails takes it.
const patience = 3 * time.Minute

// atOnce is how many tests run at the same time, at the least: most of their time
// they wait, for processes to start and for pauses to end. With the race detector
// half as many, because each process takes several times the memory.
const atOnce = 8

// built is the directory of the executables.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	syscall.Umask(0) // what is private is so by itself
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		n := atOnce
		if raceDetector {
			n /= 2
		}
		_ = flag.Set(f.Name, strconv.Itoa(max(n, runtime.GOMAXPROCS(0))))
	}
	dir, err := os.MkdirTemp("", "switchboard-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	args := []string{"build", "-tags", "crashpoints", "-o", dir + string(filepath.Separator)}
	if raceDetector {
		args = append(args, "-race")
	}
	args = append(args, "github.com/switchboard-run/switchboard/cmd/switchboard",
		"github.com/switchboard-run/switchboard/sdk/examples/filechannel", "./testdata/probe", "./testdata/hostile", "./testdata/mcpserver")
	build := exec.Command("go", args...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building what is tested:", err)
		return 1
	}
	return m.Run()
}

// dependOnSources looks at every directory of sources, once a run. What is tested is
// built here and not linked into the tests: without a look at it, go test would show
// the stored result of an older build.
var dependOnSources = sync.OnceValue(func() error {
	return filepath.WalkDir(filepath.Join("..", "..", ".."), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		return err
	})
})

func binary(name string) string { return filepath.Join(built, name) }
