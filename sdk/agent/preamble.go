package agent

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Facts that change during a conversation (the time, the channels) are not part of the
// system prompt, because a provider caches a request up to the first byte that differs.
// A message has them as its preamble: the first message all of them, later ones those
// that have changed. The preamble is recorded with the message, and later requests
// repeat it unchanged.

const (
	preambleHead  = "[now]\n"
	preambleFence = "~~~"
	// maxPreambleAge is how old the time in a turn's last preamble may get.
	maxPreambleAge = 5 * time.Minute
)

// addPreamble adds the facts that the model does not know yet to the first input or
// note of rows, which are not recorded yet.
func (t *turn) addPreamble(rows []*busv1.Entry) {
	i := slices.IndexFunc(rows, func(e *busv1.Entry) bool {
		return e.GetKind() == contract.EntryInput || e.GetKind() == contract.EntryNote
	})
	if i < 0 || slices.ContainsFunc(rows, func(e *busv1.Entry) bool { return e.GetPreamble() != "" }) {
		return
	}
	t.preambleAt = time.Now()
	scene := t.scene(t.preambleAt)
	text, err := t.a.prompts.Preamble(scene)
	if err != nil {
		t.a.log.Warn("render the preamble of a message: using the plain one", "error", err)
		text, _ = Plain{}.Preamble(scene)
	}
	seen, _, _ := t.visible()
	rows[i].Preamble = changedLines(text, seen)
}

// refreshPreamble adds a note with the time to a turn that has taken long.
func (t *turn) refreshPreamble() {
	if time.Since(t.preambleAt).Abs() < maxPreambleAge {
		return
	}
	note := &busv1.Entry{Kind: contract.EntryNote}
	t.addPreamble([]*busv1.Entry{note})
	if note.GetPreamble() != "" {
		t.fresh = append(t.fresh, note)
	}
}

// changedLines returns the lines of text that differ from the last line with the same
// key in seen. The key is the part of a line before its colon.
func changedLines(text string, seen []row) string {
	last := map[string]string{}
	for _, r := range seen {
		for line := range strings.Lines(r.GetPreamble()) {
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

// lastPreamble returns the time of the last row with a preamble.
func lastPreamble(rows []row) time.Time {
	for _, r := range slices.Backward(rows) {
		if r.GetPreamble() != "" {
			return time.UnixMicro(r.GetCreatedAtUs())
		}
	}
	return time.Time{}
}

// withPreamble returns the content of a message with a preamble and a text.
func withPreamble(preamble, text string) string {
	if preamble == "" {
		return text
	}
	block := preambleHead + preambleFence + "\n" + preamble + "\n" + preambleFence
	if text == "" {
		return block
	}
	return block + "\n" + text
}

// SplitPreamble splits the content of a message of a request into its preamble, which
// may be empty, and its text.
func SplitPreamble(content string) (preamble, text string) {
	rest, ok := strings.CutPrefix(content, preambleHead+preambleFence+"\n")
	if !ok {
		return "", content
	}
	preamble, text, ok = strings.Cut(rest, "\n"+preambleFence)
	if !ok {
		return "", content
	}
	return preamble, strings.TrimPrefix(text, "\n")
}
