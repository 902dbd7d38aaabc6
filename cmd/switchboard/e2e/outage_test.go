package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// What was written hours ago, while nothing ran, is answered together, in its
// chat, also if the kernel falls again as soon as it has it.
func TestMessagesOfAnOutageGetOneAnswerForEachChat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		crash       string
		chats, each int
	}{{"", 3, 10}, {"after 1", 3, 10}, {"before 2", 3, 10}, {"", 5, 50}, {"after 1", 5, 50}, {"before 1", 5, 50}} {
		chats, each, crash := tt.chats, tt.each, tt.crash
		t.Run(fmt.Sprint(chats*each, " messages ", crash), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "", telegramtest.WithClock(func() time.Time { return time.Now().Add(-3 * time.Hour) }))
			s.plan = func(string) [][]openaitest.Call { return nil }
			s.open()
			s.stop()
			var tokens []string
			for i := range each {
				for c := range chats {
					tokens = append(tokens, fmt.Sprintf("<c%dm%d>", c, i))
					s.write(tokens[len(tokens)-1])
				}
			}
			s.crashAt(crash)
			s.over(tokens...)
			s.survived(tokens...)
			for c := range chats {
				var want []string
				for i := range each {
					want = append(want, fmt.Sprintf("<c%dm%d>", c, i))
				}
				if got := s.texts(int64(5000 + c)); len(got) != 1 || got[0] != "You said "+strings.Join(want, " ") {
					t.Errorf("chat %d has %q", 5000+c, got)
				}
			}
			for _, r := range s.model.Requests() {
				contains(t, "the request", transcript(r), "[note", fmt.Sprintf("The next %d messages were sent", each),
					"3 hours before", "Answer them together")
			}
		})
	}
}
