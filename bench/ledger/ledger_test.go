package ledger

import (
	"net/http"
	"net/url"
	"path/filepath"
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
	long := replyTo("<m>", AtLength)
	head, tail, _ := strings.Cut(long, "\n\nThere is more to be said of it, which is the line 50 ")
	tail = "There is more to be said of it, which is the line 50 " + tail
	other, _, _ := strings.Cut(long, "\n\nThere is more to be said of it, which is the line 40 ")
	for name, tt := range map[string]struct {
		chat       []string
		news, acts []string
		told       string
		want       Counts
		kind       Reply
	}{
		"all is well": {[]string{said, reminder}, []string{news}, []string{act}, "did <m>", Counts{}, AtOnce},
		"in parts":    {[]string{head, tail, reminder}, []string{news}, []string{act}, "did <m>", Counts{}, AtLength},
		"a part is missing": {[]string{tail, reminder}, []string{news}, []string{act}, "did <m>", Counts{Unanswered: 1},
			AtLength},
		"a part twice": {[]string{head, head, tail, reminder}, []string{news}, []string{act}, "did <m>",
			Counts{Twice: 1}, AtLength},
		"in other parts too": {[]string{head, tail, other, reminder}, []string{news}, []string{act}, "did <m>",
			Counts{Twice: 1}, AtLength},
		"a part with a mark": {[]string{head, contract.RepeatMark + head, tail, reminder}, []string{news}, []string{act},
			"did <m>", Counts{Marked: 1}, AtLength},
		"a begun text": {[]string{said + " ▍", said, reminder}, []string{news}, []string{act}, "did <m>",
			Counts{DraftsLeft: 1}, AtOnce},
		"nobody asked for it": {[]string{said, reminder, "Sorry", "You said <m> and <m>"}, []string{news, "News"},
			[]string{act}, "did <m>", Counts{Stray: 3}, AtOnce},
		"again with a mark": {[]string{said, contract.RepeatMark + said, reminder},
			[]string{news, contract.RepeatMark + news}, []string{act}, "did <m>", Counts{Marked: 2}, AtOnce},
		"with a mark alone": {[]string{contract.RepeatMark + said, reminder}, []string{news}, []string{act}, "did <m>",
			Counts{Marked: 1}, AtOnce},
		"outcome unknown": {[]string{said, reminder}, []string{news}, nil, "it is unknown whether it had its effect",
			Counts{ToolsUnknown: 1}, AtOnce},
		"nothing": {nil, nil, nil, "", Counts{Unanswered: 1, SendsLost: 1, RemindersMissed: 1}, AtOnce},
		"everything twice": {[]string{said, said, reminder, reminder}, []string{news, news}, []string{act, act},
			"did <m>", Counts{Twice: 1, SendsTwice: 1, ToolsTwice: 1, RemindersTwice: 1}, AtOnce},
		"late reminder": {[]string{said, "⏰ Reminder <m> (late: was due 12:00)", reminder}, []string{news},
			[]string{act}, "did <m>", Counts{RemindersTwice: 1}, AtOnce},
		"did nothing": {[]string{said, reminder}, []string{news}, nil, "did <m>", Counts{ToolsTwice: 1}, AtOnce},
		"the model knows wrong": {[]string{said, reminder}, []string{news}, []string{act}, "there is no such tool",
			Counts{ToolsTwice: 1}, AtOnce},
		"reminder of another": {[]string{said, "⏰ Reminder <n>"}, []string{news}, []string{act}, "did <m>",
			Counts{RemindersMissed: 1, Stray: 1}, AtOnce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "switchboard.db")
			store, err := sqlite.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			platform, err := Platforms["telegram"](func(Arrived) {})
			if err != nil {
				t.Fatal(err)
			}
			defer platform.Close()
			h := Ledger{
				Platform: platform, Model: NewScript(), Dead: func() []string { return Dead(file) },
				Noted: func(file string) []string { return Noted(filepath.Join(dir, file)) },
			}
			platform.Write(7, "message <m>")
			bot := platform.(*Telegram)
			for _, text := range tt.chat {
				resp, err := http.PostForm(bot.URL()+"/bot"+bot.Token()+"/sendMessage",
					url.Values{"chat_id": {strconv.Itoa(7)}, "text": {text}})
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", resp, err)
				}
				_ = resp.Body.Close()
			}
			for file, lines := range map[string][]string{"news": tt.news, "acts": tt.acts} {
				for _, line := range lines {
					if err := note(filepath.Join(dir, file), line); err != nil {
						t.Fatal(err)
					}
				}
			}
			h.Model.told["<m>"], h.Model.jobs["<m>"] = tt.told, Job{Reply: tt.kind}
			h.Model.dues["<m>"] = time.Now().Add(time.Hour)
			tt.want.Messages = 1
			got, problems := h.count([]Message{{Token: "<m>", Chat: 7, Reminder: true}}, nil)
			if got != tt.want || got.Losses() != len(problems) {
				t.Errorf("%+v, want %+v: %s", got, tt.want, strings.Join(problems, "; "))
			}
		})
	}
}
