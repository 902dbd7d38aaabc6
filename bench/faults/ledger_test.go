package main

import (
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// A ledger that cannot see a loss would always be content.
func TestLedgerSeesWhatIsLostAndWhatComesTwice(t *testing.T) {
	t.Parallel()
	said, reminder, news, act := "You said <m>", "⏰ Reminder <m>", "News of <m>", "<m>"
	long := replyTo("<m>", atLength)
	head, tail, _ := strings.Cut(long, "\n\nThere is more to be said of it, which is the line 50 ")
	tail = "There is more to be said of it, which is the line 50 " + tail
	other, _, _ := strings.Cut(long, "\n\nThere is more to be said of it, which is the line 40 ")
	for name, tt := range map[string]struct {
		chat       []string
		news, acts []string
		told       string
		want       counts
		kind       reply
	}{
		"all is well": {[]string{said, reminder}, []string{news}, []string{act}, "did <m>", counts{}, atOnce},
		"in parts":    {[]string{head, tail, reminder}, []string{news}, []string{act}, "did <m>", counts{}, atLength},
		"a part is missing": {[]string{tail, reminder}, []string{news}, []string{act}, "did <m>", counts{Unanswered: 1},
			atLength},
		"a part twice": {[]string{head, head, tail, reminder}, []string{news}, []string{act}, "did <m>",
			counts{Twice: 1}, atLength},
		"in other parts too": {[]string{head, tail, other, reminder}, []string{news}, []string{act}, "did <m>",
			counts{Twice: 1}, atLength},
		"a part with a mark": {[]string{head, contract.RepeatMark + head, tail, reminder}, []string{news}, []string{act},
			"did <m>", counts{Marked: 1}, atLength},
		"a begun text": {[]string{said + " ▍", said, reminder}, []string{news}, []string{act}, "did <m>",
			counts{DraftsLeft: 1}, atOnce},
		"nobody asked for it": {[]string{said, reminder, "Sorry", "You said <m> and <m>"}, []string{news, "News"},
			[]string{act}, "did <m>", counts{Stray: 3}, atOnce},
		"again with a mark": {[]string{said, contract.RepeatMark + said, reminder},
			[]string{news, contract.RepeatMark + news}, []string{act}, "did <m>", counts{Marked: 2}, atOnce},
		"with a mark alone": {[]string{contract.RepeatMark + said, reminder}, []string{news}, []string{act}, "did <m>",
			counts{Marked: 1}, atOnce},
		"outcome unknown": {[]string{said, reminder}, []string{news}, nil, "it is unknown whether it had its effect",
			counts{ToolsUnknown: 1}, atOnce},
		"nothing": {nil, nil, nil, "", counts{Unanswered: 1, SendsLost: 1, RemindersMissed: 1}, atOnce},
		"everything twice": {[]string{said, said, reminder, reminder}, []string{news, news}, []string{act, act},
			"did <m>", counts{Twice: 1, SendsTwice: 1, ToolsTwice: 1, RemindersTwice: 1}, atOnce},
		"late reminder": {[]string{said, "⏰ Reminder <m> (late: was due 12:00)", reminder}, []string{news},
			[]string{act}, "did <m>", counts{RemindersTwice: 1}, atOnce},
		"did nothing": {[]string{said, reminder}, []string{news}, nil, "did <m>", counts{ToolsTwice: 1}, atOnce},
		"the model knows wrong": {[]string{said, reminder}, []string{news}, []string{act}, "there is no such tool",
			counts{ToolsTwice: 1}, atOnce},
		"reminder of another": {[]string{said, "⏰ Reminder <n>"}, []string{news}, []string{act}, "did <m>",
			counts{RemindersMissed: 1, Stray: 1}, atOnce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := newHome("", "telegram", "")
			if err != nil {
				t.Fatal(err)
			}
			defer h.close(false)
			store, err := sqlite.Open(h.file("switchboard.db"))
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			h.write(7, "<m>")
			bot := h.platform.(*telegram)
			for _, text := range tt.chat {
				resp, err := http.PostForm(bot.URL()+"/bot"+bot.Token()+"/sendMessage",
					url.Values{"chat_id": {strconv.Itoa(7)}, "text": {text}})
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", resp, err)
				}
				_ = resp.Body.Close()
			}
			for file, lines := range map[string][]string{"news": tt.news, "acts": tt.acts} {
				if err := os.MkdirAll(h.file("data", "shop"), 0o700); err != nil {
					t.Fatal(err)
				}
				for _, line := range lines {
					if err := note(h.file("data", "shop", file), line); err != nil {
						t.Fatal(err)
					}
				}
			}
			h.model.told["<m>"], h.model.jobs["<m>"] = tt.told, job{reply: tt.kind}
			h.model.dues["<m>"] = time.Now().Add(time.Hour)
			tt.want.Messages = 1
			got, problems := h.count([]message{{token: "<m>", chat: 7, reminder: true}}, nil)
			if got != tt.want || got.losses() != len(problems) {
				t.Errorf("%+v, want %+v: %s", got, tt.want, strings.Join(problems, "; "))
			}
		})
	}
}
