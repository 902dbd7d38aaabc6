package telegramtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// Who waits for what a request does looks once more when it has done it: looking
// when it arrives may be too early.
func TestWaitChecksAfterEachRequest(t *testing.T) {
	t.Parallel()
	s := telegramtest.Start(t)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = try(t.Context(), s, s.Token(), "setMyCommands", m{"commands": []m{{"command": "new", "description": "New"}}})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Wait(ctx, "the menu", func() bool {
		shown := len(s.Commands("")) > 0
		if s.Calls("setMyCommands") > 0 {
			<-answered // what was seen before is what counts
		}
		return shown
	}); err != nil {
		t.Error(err)
	}
}
