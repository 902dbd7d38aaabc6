package launch

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// modeEnv makes the test binary something else than a test: an extension, or a
// kernel that is to be killed.
const modeEnv = "LAUNCH_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		play(mode)
		return
	}
	if err := os.Setenv("KERNEL_SECRET", "hunter2"); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}
