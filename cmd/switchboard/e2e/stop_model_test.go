package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// TestTurnWhoseModelStopsFirstGoesOnAfterTheStop has a turn ask its model when
// the kernel is stopping and the model's extension has ended already. Nobody is
// told that there is no model: the next kernel goes on with the turn.
func TestTurnWhoseModelStopsFirstGoesOnAfterTheStop(t *testing.T) {
	t.Parallel()
	const token = "<c0m0>"
	s := newShop(t, "processes: separate\n")
	s.plan = func(token string) [][]openaitest.Call {
		return [][]openaitest.Call{{work("peek", token, 0, "released")}}
	}
	s.open()
	s.write(token)
	s.eventually("the tool to run", func() bool {
		return slices.ContainsFunc(s.lines("shop", "calls"), func(line string) bool {
			return strings.HasPrefix(line, "peek")
		})
	})
	_ = s.kernel.cmd.Process.Signal(syscall.SIGINT)
	s.eventually("the extension of the model to end", func() bool {
		return !slices.ContainsFunc(descendants(t, s.kernel.pid()),
			func(p process) bool { return strings.Contains(p.command, "openai:openai") })
	})
	s.world.write("", 0o600, "data", "shop", "released")
	<-s.kernel.ended
	s.start()
	s.survived(token)
}
