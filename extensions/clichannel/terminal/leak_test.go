package terminal

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, reads("newKeys"), reads("openConsole")) }

// reads ignores the goroutine that reads the terminal until its next key or its end.
func reads(who string) goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/switchboard-run/switchboard/extensions/clichannel/terminal." + who +
		".func1")
}
