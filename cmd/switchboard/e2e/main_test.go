package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// patience bounds every wait. It is long because the machine may be busy, and
// only a test that fails takes it.
const patience = 3 * time.Minute

// atOnce is how many tests run at the same time, at the least.
const atOnce = 4

// built is the directory of the executables.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// Much of a test's time it waits: for processes to start, for pauses to end.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set(f.Name, strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0))))
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
		"github.com/switchboard-run/switchboard/sdk/examples/filechannel", "./testdata/probe")
	build := exec.Command("go", args...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building what is tested:", err)
		return 1
	}
	return m.Run()
}

func binary(name string) string { return filepath.Join(built, name) }
