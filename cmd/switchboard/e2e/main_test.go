package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience bounds every wait. It is long because the machine may be busy, and
// only a test that fails takes it.
const patience = 3 * time.Minute

// built is the directory of the executables.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
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
