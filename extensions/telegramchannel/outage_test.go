package telegramchannel

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// What was written hours ago, more than Telegram gives at a time, is reported in
// one commit: each chat is to get one answer. It is so, and nothing is lost or
// doubled, if the process ends or Telegram fails in between.
func TestMessagesOfAnOutageAreReportedInOneTurn(t *testing.T) {
	t.Parallel()
	const written, chats = 250, 3
	for name, tt := range map[string]struct {
		ago     time.Duration
		between *tg.Fault // what polls meet once the first messages are held
		batches []int
	}{
		"after hours":       {ago: 3 * time.Hour, batches: []int{250}},
		"killed in between": {ago: 3 * time.Hour, between: &tg.Fault{Hang: true}, batches: []int{250}},
		"Telegram fails then": {ago: 3 * time.Hour, between: &tg.Fault{Status: http.StatusInternalServerError},
			batches: []int{100, 150}},
		"just now": {batches: []int{100, 100, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tg.Start(t, tg.WithClock(func() time.Time { return time.Now().Add(-tt.ago) }))
			var want []string
			for i := range written {
				want = append(want, fmt.Sprint("message ", i))
				s.Say(int64(7+i%chats), want[i])
			}
			k := newMemory()
			met := false
			k.refuse = func(m []contract.UserMessage) error {
				if tt.between != nil && !met {
					met = true
					n := 1
					if tt.between.Hang {
						n = 1_000_000
					}
					s.Fail("getUpdates", n, *tt.between)
				}
				return nil
			}
			_, end := begin(t, k, s, s.Token())
			if tt.between != nil && tt.between.Hang {
				k.await(t, "the first commit", func() bool { return met })
				end()
				if c := k.cursor(s.Bot().ID); len(c.Held) != 100 || len(k.got) != 0 {
					t.Fatalf("%d messages are held, %d reported", len(c.Held), len(k.got))
				}
				s.Heal()
				begin(t, k, s, s.Token())
			}
			var got []string
			for _, m := range k.messages(t, written) {
				got = append(got, m.Text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("reported: %q", got)
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			if !slices.Equal(k.batches, tt.batches) {
				t.Errorf("in commits of %v", k.batches)
			}
		})
	}
}
