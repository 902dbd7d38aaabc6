package agent

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// What changes while a conversation goes on (the time, the channels) stands in
// no system prompt: a provider's cache holds a request up to the first byte that
// differs. A model is told it with a message: all of it with the first, and with
// later ones what has changed. It is recorded with the message and sent again
// as it was sent.

const (
	toldHead  = "[now]\n"
	toldFence = "~~~"
	// retell is how old the time that a turn was told may get.
	retell = 5 * time.Minute
)

// tell has the first of the rows, which are about to be recorded, say what the
// model does not know yet.
func (t *turn) tell(rows []*busv1.Entry) {
	i := slices.IndexFunc(rows, func(e *busv1.Entry) bool {
		return e.GetKind() == contract.EntryInput || e.GetKind() == contract.EntryNote
	})
	if i < 0 || slices.ContainsFunc(rows, func(e *busv1.Entry) bool { return e.GetTold() != "" }) {
		return
	}
	t.toldAt = time.Now()
	scene := t.scene(t.toldAt)
	text, err := t.a.prompts.Told(scene)
	if err != nil {
		t.a.log.Warn("render what a model is told with a message: using the plain text", "error", err)
		text, _ = Plain{}.Told(scene)
	}
	seen, _, _ := t.visible()
	rows[i].Told = news(text, seen)
}

// tellAgain tells the time in the middle of a turn that has waited for long.
func (t *turn) tellAgain() {
	if time.Since(t.toldAt).Abs() < retell {
		return
	}
	note := &busv1.Entry{Kind: contract.EntryNote}
	t.tell([]*busv1.Entry{note})
	if note.GetTold() != "" {
		t.fresh = append(t.fresh, note)
	}
}

// news is the lines of text that differ from what was told last under the same
// key, which is the part of a line before its colon.
func news(text string, seen []row) string {
	last := map[string]string{}
	for _, r := range seen {
		for line := range strings.Lines(r.GetTold()) {
			line = strings.TrimSpace(line)
			last[key(line)] = line
		}
	}
	var fresh []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && last[key(line)] != line {
			fresh = append(fresh, line)
		}
		delete(last, key(line))
	}
	for _, k := range slices.Sorted(maps.Keys(last)) {
		if gone := k + ": gone"; last[k] != gone {
			fresh = append(fresh, gone)
		}
	}
	return strings.Join(fresh, "\n")
}

func key(line string) string {
	k, _, _ := strings.Cut(line, ":")
	return k
}

// lastTold is when recorded rows told the time last.
func lastTold(rows []row) time.Time {
	for _, r := range slices.Backward(rows) {
		if r.GetTold() != "" {
			return time.UnixMicro(r.GetCreatedAtUs())
		}
	}
	return time.Time{}
}

// withTold is a message as a model sees it: what it is told, and the text.
func withTold(told, text string) string {
	if told == "" {
		return text
	}
	block := toldHead + toldFence + "\n" + told + "\n" + toldFence
	if text == "" {
		return block
	}
	return block + "\n" + text
}

// SplitTold returns what a message of a request tells besides its text, such as
// the time, and the text.
func SplitTold(content string) (told, text string) {
	rest, ok := strings.CutPrefix(content, toldHead+toldFence+"\n")
	if !ok {
		return "", content
	}
	told, text, ok = strings.Cut(rest, "\n"+toldFence)
	if !ok {
		return "", content
	}
	return told, strings.TrimPrefix(text, "\n")
}
